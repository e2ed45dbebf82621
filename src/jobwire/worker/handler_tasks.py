"""Tasks that handlers make: with `asyncio.gather`, `wait_for`, a TaskGroup or `create_task`.

If SystemExit or KeyboardInterrupt leaves a task, asyncio ends the event loop, and with it the worker and all of its
jobs. In the handler's own task the worker catches both. For the tasks that a handler makes, a task factory does: there
they become a RuntimeError, which the handler gets where it awaits the task. The handler is found by a context variable,
which asyncio passes on to these tasks and to those that they make in turn.

The factory also registers each of them with its run, so that the worker can name the job of a task that blocks the
event loop, and can stop waiting for a task that ignores its cancellation.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from jobwire.boundary import Claim
from jobwire.errors import shown

Factory = Callable[..., Any]


class Maker(Protocol):
    """The run of a job whose handler makes tasks."""

    @property
    def claim(self) -> Claim: ...

    def made(self, task: asyncio.Task[Any]) -> None:
        """Called with each task that the handler makes."""
        ...


maker: ContextVar[Maker | None] = ContextVar("jobwire_run", default=None)
"""The run that this code belongs to."""

_installed: WeakKeyDictionary[asyncio.AbstractEventLoop, _Installed] = WeakKeyDictionary()


class _Installed:
    """The task factory of one event loop, shared by all workers that run in it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.users = 0
        self.before: Factory | None = loop.get_task_factory()
        self.factory = partial(_make, self.before or _plain)


@contextmanager
def contained_tasks() -> Generator[None]:
    """Contains the tasks that handlers make in the running event loop, inside the block."""
    loop = asyncio.get_running_loop()
    installed = _installed.get(loop)
    if installed is None:
        installed = _installed[loop] = _Installed(loop)
        loop.set_task_factory(installed.factory)
    installed.users += 1
    try:
        yield
    finally:
        installed.users -= 1
        if not installed.users:
            del _installed[loop]
            if loop.get_task_factory() is installed.factory:  # otherwise another one was put over it, and it stays
                loop.set_task_factory(installed.before)


def task_maker() -> Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]:
    """Returns the quickest function that makes tasks in the running event loop. It respects a factory of the
    application."""
    loop = asyncio.get_running_loop()
    installed = _installed.get(loop)
    before = loop.get_task_factory() if installed is None else installed.before
    return partial(asyncio.Task, loop=loop) if before is None else loop.create_task


def _plain(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(coroutine, loop=loop, **options)


def _make(before: Factory, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
    run = maker.get()
    if run is None or not inspect.iscoroutine(coroutine):
        return before(loop, coroutine, **options)
    contained = _contained(coroutine, run)
    contained.__name__, contained.__qualname__ = coroutine.__name__, coroutine.__qualname__
    task: asyncio.Task[Any] = before(loop, contained, **options)
    # A task that is cancelled before its first step never awaits the coroutine, and Python would warn about that.
    task.add_done_callback(lambda _: coroutine.close())
    run.made(task)
    return task


async def _contained(coroutine: Coroutine[Any, Any, Any], run: Maker) -> Any:
    try:
        return await coroutine
    except (SystemExit, KeyboardInterrupt) as error:
        job = run.claim.job.id
        raise RuntimeError(f"a task that the handler of job {job} has made raised {shown(error)}") from error
