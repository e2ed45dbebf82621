"""Checks of what was added while an app is tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from jobwire import codec, spelling
from jobwire.backends.memory.store.record import Record
from jobwire.boundary import Feature
from jobwire.checks import whole
from jobwire.counted import counted
from jobwire.errors import WrongState
from jobwire.model import Job
from jobwire.tasks.runner import without_context
from jobwire.tasks.task import Task
from jobwire.tasks.values import to_json
from jobwire.testing.store import StoreInMemory

if TYPE_CHECKING:
    from jobwire import sync

R = TypeVar("R")
_SHOWN = 5
"""Jobs in the message of a failed assertion."""


def assert_added(task: Task[..., Any] | sync.Task[..., Any], /, *, count: int | None = None, **arguments: Any) -> None:
    """Asserts that jobs of the task were added with these arguments, inside `app.testing()`: at least one, or as many
    as `count` demands. Arguments that are not given may be anything.

        assert_added(send_welcome, to="a@example.com")
        assert_added(send_welcome, count=0)

    Values are compared as they are written: in JSON. For a task that takes one object, the names are those of its
    fields, or that of the parameter for the whole object. A task's own parameter `count` can't be given here: compare
    `t.added(task)` for that.
    """
    inner = _inner(task)
    store = inner.app.store
    if not isinstance(store, StoreInMemory):
        raise WrongState("assert_added looks at the jobs of a block: use it inside app.testing()")
    wanted = None if count is None else whole("count", count, minimum=0)
    expected = _written(inner, arguments)
    jobs = [_arguments(record) for record in _records(store, inner)]
    found = sum(not _differing(inner, one, expected) for one in jobs)
    if found == wanted if wanted is not None else found:
        return
    raise AssertionError(f"{_first(inner, expected, wanted, found)} {_what_instead(store, inner, expected, jobs)}")


def added_jobs(store: StoreInMemory, task: Task[..., R]) -> list[Job[R]]:
    """Returns the jobs of a task that were added, as they are now."""
    inner = _inner(task)
    return [inner.typed(record.snapshot(inner.queue)) for record in _records(store, inner)]


def _inner(task: Any) -> Task[..., Any]:
    """Returns the task itself, which a blocking one has inside."""
    return cast("Task[..., Any]", getattr(task, "inner", task))


def _records(store: StoreInMemory, task: Task[..., Any]) -> list[Record]:
    # Without job names a queue has one task, and the name of its jobs is the queue's.
    name = task.name if store.connection.backend.capabilities.has(Feature.JOB_NAMES) else task.queue
    return [record for record in store.added(task.queue) if record.name == name]


def _arguments(record: Record) -> Any:
    return without_context(codec.loads(record.data))


def _written(task: Task[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the expected arguments as JSON. Refuses names that the task does not have."""
    known = {*task.parameters.fields, *task.parameters.names}
    for name, value in arguments.items():
        if name not in known:
            raise spelling.unknown(name, value, sorted(known), f"task {task.name}", word="parameter")
    return {name: codec.loads(codec.dumps(to_json(value))) for name, value in arguments.items()}


def _differing(task: Task[..., Any], data: Any, expected: Mapping[str, Any]) -> list[str]:
    """Returns the names of the expected arguments that a job does not have."""
    found: dict[str, Any] = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    whole_object = task.parameters.single
    return [
        name
        for name, value in expected.items()
        if (data if name == whole_object else found.get(name, _Missing)) != value
    ]


class _Missing:
    """Equals no value."""


def _first(task: Task[..., Any], expected: Mapping[str, Any], wanted: int | None, found: int) -> str:
    with_these = f" with {_shown(expected)}" if expected else ""
    if wanted is None:
        return f"no job of task {task.name} was added{with_these}."
    number = counted(wanted, "job") if wanted else "no job"
    return f"expected {number} of task {task.name}{with_these}, but {found} {'was' if found == 1 else 'were'} added."


def _what_instead(store: StoreInMemory, task: Task[..., Any], expected: Mapping[str, Any], jobs: list[Any]) -> str:
    """Returns the part of the message that shows what was added, nearest first."""
    if not jobs:
        return _others(store)
    differing = sorted(((_differing(task, one, expected), one) for one in jobs), key=lambda pair: len(pair[0]))
    lines = [f"  {_shown(one)}{_marked(names)}" for names, one in differing[:_SHOWN]]
    if len(jobs) > _SHOWN:
        lines.append(f"  … and {len(jobs) - _SHOWN} more")
    order = ", nearest first" if len(jobs) > 1 and expected else ""
    return "\n".join([f"Added of this task{order}:", *lines])


def _others(store: StoreInMemory) -> str:
    with store.memory.lock:
        names = [queue.name for queue in store.memory.queues()]
    added = Counter(record.name for name in names for record in store.added(name))
    if not added:
        return "Nothing was added at all."
    return f"Added were: {', '.join(f'{name} ({number})' for name, number in added.most_common())}."


def _shown(data: Any) -> str:
    if isinstance(data, dict):
        return ", ".join(f"{name}={value!r}" for name, value in cast("dict[str, Any]", data).items()) or "no arguments"
    return repr(data)


def _marked(names: list[str]) -> str:
    return f"    ({', '.join(names)} {'differs' if len(names) == 1 else 'differ'})" if names else ""
