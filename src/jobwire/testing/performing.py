"""Runs one task here and now, without a store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from jobwire import checks, codec, spelling
from jobwire.backends.memory.produce.add import add
from jobwire.boundary import Claim, Completed
from jobwire.checks import whole
from jobwire.errors import InvalidOption
from jobwire.options import NewJob
from jobwire.portal import portal
from jobwire.preparing import prepare
from jobwire.tasks import Call
from jobwire.tasks.current import CONTEXT_KEY
from jobwire.tasks.depends import Values
from jobwire.tasks.links import check_first
from jobwire.tasks.runner import TaskRunner, in_this_process
from jobwire.testing.clock import Clock
from jobwire.testing.runs import run_claim
from jobwire.testing.store import StoreInMemory

P = ParamSpec("P")
R = TypeVar("R")
Result_co = TypeVar("Result_co", covariant=True)
_OPTIONS = ("job_id", "attempts_made", "context")


class AnyTask(Protocol[P, Result_co]):
    """A task, of `jobwire` or of `jobwire.sync`."""

    def s(self, *args: P.args, **kwargs: P.kwargs) -> Call[Result_co]: ...


@overload
async def perform(task: AnyTask[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
@overload
async def perform(
    call: Call[R], /, *, job_id: str | None = None, attempts_made: int = 0, context: Mapping[str, Any] | None = None
) -> R: ...
async def perform(what: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Runs one task here, as a worker runs it, and returns its result: `await perform(send_welcome, to="a@b.c")`.

    The arguments are written to JSON and read back, as is the result. Dependencies are provided, middleware runs around
    the task, `current_job()` works, and the timeout holds. What the task raises is raised here. There is one attempt.
    The app's lifespan is not entered, and no store is used, but a task that adds jobs adds them to the app's store:
    perform such a one inside `app.testing()`.

    Give a call to set what a task sees of its job: `await perform(send_welcome.s(to="a@b.c"), attempts_made=2)`.
    `job_id` is the job's id, `attempts_made` the number of earlier attempts, `context` what middleware of a producer
    has sent along.
    """
    return await _perform(*_call(what, args, kwargs))


@overload
def perform_sync(task: AnyTask[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
@overload
def perform_sync(
    call: Call[R], /, *, job_id: str | None = None, attempts_made: int = 0, context: Mapping[str, Any] | None = None
) -> R: ...
def perform_sync(what: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Does what `perform` does, for plain test functions."""
    return portal.run(_perform(*_call(what, args, kwargs)))


def _call(what: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Call[Any], dict[str, Any]]:
    """Returns the call of a task, and the options for its job."""
    if not isinstance(what, Call):
        if not hasattr(what, "s"):
            raise InvalidOption("task", what, "must be a task, or a call of one: task.s(…)")
        return what.s(*args, **named), {}
    for name, value in named.items():
        if name not in _OPTIONS:
            raise spelling.unknown(name, value, _OPTIONS, "perform")
    if args:
        raise InvalidOption("arguments", args, "belong into the call: perform(task.s(…))")
    return cast("Call[Any]", what), named


async def _perform(call: Call[Any], options: dict[str, Any]) -> Any:
    app, task = call.task.app, call.task
    store = StoreInMemory(app.store, Clock())
    check_first("call", call)
    claim = _claim(store, task.queue, task.new_job(call.data, call.options), **options)
    async with Values(store.overrides) as values:
        runner = TaskRunner(task.queue, [in_this_process(task)], app.middleware.running, values, by_name=False)
        with closing(runner):
            ended = await run_claim(runner, store.connection.backend, claim, logs=False)
    if isinstance(ended.outcome, Completed):
        return task.read_result(claim.job.id, codec.loads(ended.outcome.result))
    raise ended.reason()


def _claim(
    store: StoreInMemory,
    queue: str,
    new: NewJob,
    *,
    job_id: str | None = None,
    attempts_made: int = 0,
    context: Mapping[str, Any] | None = None,
) -> Claim:
    """Returns the claim on a job that is written as it would be for a store, with the options that a task sees."""
    job = NewJob(_with_context(new.data, context), new.name, attempts=new.attempts)
    prepared = prepare(store.connection.backend, queue, job, store.size_limit)
    wanted = None if job_id is None else checks.job_id(job_id)
    made = whole("attempts_made", attempts_made, minimum=0)
    with store.memory.lock:
        state = store.memory.queue(queue)
        added = add(state, prepared, store.memory.now(), job_id=wanted)
        state.jobs[added.id].attempts_made = made
    claim = store.consumer(queue).claim_job(added.id)
    return cast("Claim", claim)  # it was added just now


def _with_context(data: Any, context: Mapping[str, Any] | None) -> Any:
    if context is None:
        return data
    if data is not None and not isinstance(data, dict):
        raise InvalidOption("context", context, "can't be sent: the data of the task is not an object")
    held = cast("dict[str, Any]", data or {})
    return {**held, CONTEXT_KEY: {**held.get(CONTEXT_KEY, {}), **context}}
