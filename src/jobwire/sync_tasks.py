"""Typed tasks for blocking code: `App` and its tasks, as `jobwire.sync` has them."""

from __future__ import annotations

import functools
from typing import Any, cast

from jobwire import tasks as _tasks
from jobwire.blocking import Blocking, blocking, blocking_class, returned, wrapped
from jobwire.portal import portal
from jobwire.tasks import compose as _compose
from jobwire.tasks import task as _task
from jobwire.tasks.parameters import previous

__all__ = ["App", "Chain", "Group", "GroupJobs", "Task", "chain", "chord", "current_job", "group", "previous"]


@returned
class Task(blocking_class(_task.Task, ("app", "function", "parameters", "settings"))):  # type: ignore[misc]
    """A task whose `add` and other calls block. Calling the task itself runs the function here and now."""

    def _take(self, inner: Any) -> None:
        functools.update_wrapper(cast("Any", self), inner.function)
        self.inner = inner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.function(*args, **kwargs)


class App(blocking_class(_tasks.App, ("middleware", "state"))):  # type: ignore[misc]
    """An app for blocking code. Its arguments are those of `jobwire.App`. Its tasks are best plain functions."""

    def task(self, function: Any = None, /, **settings: Any) -> Any:
        """As `jobwire.App.task`."""
        if function is None:
            return functools.partial(self.task, **settings)
        make = self.inner.task(**settings) if settings else self.inner.task
        return wrapped(Task, portal.call(lambda: make(function)))

    @property
    def tasks(self) -> dict[str, Task]:
        """As `jobwire.App.tasks`."""
        return {name: wrapped(Task, task) for name, task in self.inner.tasks.items()}

    def handler(self, queue: str) -> Any:
        """As `jobwire.App.handler`."""
        return self.inner.handler(queue)

    def testing(self, **options: Any) -> Any:
        """As `jobwire.App.testing`: `with app.testing() as t:`."""
        from jobwire.testing.blocking import Testing  # noqa: PLC0415 - only tests need it

        return wrapped(Testing, self.inner.testing(**options))

    def make_worker(self, **options: Any) -> Any:
        """As `jobwire.App.make_worker`."""
        return self.inner.make_worker(**options)


class Chain(blocking_class(_compose.Chain)):  # type: ignore[misc]
    """A chain whose `add` blocks. Made by `chain` and `chord`."""


class Group(blocking_class(_compose.Group)):  # type: ignore[misc]
    """A group whose `add` blocks. Made by `group`."""


@returned
class GroupJobs(blocking_class(_compose.GroupJobs)):  # type: ignore[misc]
    """The jobs of a group that has been added. `wait` blocks."""

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: Any) -> Any:
        return blocking(self.inner[index])


def chain(*steps: Any) -> Chain:
    """As `jobwire.chain`, with an `add` that blocks."""
    return wrapped(Chain, _compose.chain(*map(_inner, steps)))


def group(*members: Any) -> Group:
    """As `jobwire.group`, with an `add` that blocks."""
    return wrapped(Group, _compose.group(*map(_inner, members)))


def chord(members: Any, callback: Any) -> Chain:
    """As `jobwire.chord`, with an `add` that blocks."""
    given = _inner(members) if isinstance(members, Blocking) else [_inner(one) for one in members]
    return wrapped(Chain, _compose.chord(given, _inner(callback)))


def _inner(given: Any) -> Any:
    return given.inner if isinstance(given, Blocking) else given


def current_job() -> Any:
    """Returns the job that this plain function runs for. Raises LookupError outside of a task."""
    return _tasks.current_job()
