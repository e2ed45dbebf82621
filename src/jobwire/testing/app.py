"""An app under test: its store is in memory, its jobs are run when the test wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from jobwire import checks
from jobwire.checks import Seconds, aware, seconds, yes_or_no
from jobwire.errors import InvalidOption, WaitTimeout, WrongState
from jobwire.model import Job
from jobwire.tasks.depends import Provider, check_provider
from jobwire.tasks.task import Task
from jobwire.testing.added import added_jobs
from jobwire.testing.clock import Clock
from jobwire.testing.eager import EagerRuns, EagerStore
from jobwire.testing.store import StoreInMemory
from jobwire.worker import Stats

if TYPE_CHECKING:
    from jobwire.tasks.app import App

R = TypeVar("R")


class Testing:
    """Replaces an app's store for a block. Made by `App.testing`. `clock` is the time of the store in memory."""

    __test__ = False  # not a class of tests, whatever pytest makes of its name

    def __init__(
        self,
        app: App,
        *,
        eager: bool = False,
        overrides: Mapping[Provider, Provider] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._app = app
        self._eager = yes_or_no("eager", eager)
        self._overrides = _checked(overrides)
        self.clock = Clock() if clock is None else clock
        self._store: StoreInMemory | None = None
        self._ends = AsyncExitStack()

    async def __aenter__(self) -> Self:
        if self._store is not None:
            raise WrongState("this block has begun already: call app.testing() for each")
        app, real = self._app, self._app.store
        async with AsyncExitStack() as stack:
            kind = EagerStore if self._eager else StoreInMemory
            store = kind(real, self.clock, self._overrides)
            self.clock.listen(store.memory.wake_all)
            stack.callback(self.clock.leave, store.memory.wake_all)
            app.store = store
            stack.callback(setattr, app, "store", real)
            stack.push_async_callback(store.connection.close)
            stack.push_async_callback(store.close)
            await store.open()
            if isinstance(store, EagerStore):
                store.runs = EagerRuns(app, store)
                await stack.enter_async_context(store.runs.life)
            self._store, self._ends = store, stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store = None
        await self._ends.__aexit__(kind, error, trace)

    async def run(self, until: Seconds | datetime | None = None, *, timeout: Seconds | None = None) -> Stats:
        """Works on all of the app's queues until no job is ready and none runs. Returns the worker's counts.

        With `until`, a duration or a moment, the clock moves on from one due time to the next up to then, so that
        delayed jobs, next attempts and schedules run in their order. If there are still jobs after `timeout`, in real
        time, it raises WaitTimeout. Rates of tasks do not hold here.
        """
        store, end = self._open(), self._end(until)
        within = checks.timeout(timeout)
        limit = asyncio.timeout(within)
        worker = self._app.worker(shutdown_timeout=0)
        try:
            async with limit, worker:
                await store.idle(worker.queues)
                while end is not None and (due := store.next_due(worker.queues)) is not None and due <= end:
                    self.clock.advance_to(datetime.fromtimestamp(due, UTC))
                    await store.idle(worker.queues)
        except TimeoutError:
            if within is None or not limit.expired():
                raise
            raise WaitTimeout(f"there were still jobs after {within:g} s") from None
        if end is not None:
            self.clock.advance_to(datetime.fromtimestamp(end, UTC))
        return worker.stats

    def added(self, task: Task[..., R]) -> list[Job[R]]:
        """Returns the jobs of a task that were added in this block, oldest first, as they are now, also those that have
        been deleted meanwhile. Jobs of schedules are not among them."""
        return added_jobs(self._open(), task)

    def _open(self) -> StoreInMemory:
        if self._store is None:
            raise WrongState("the block of app.testing() has not begun, or has ended")
        return self._store

    def _end(self, until: Seconds | datetime | None) -> float | None:
        if until is None:
            return None
        if isinstance(until, datetime):
            return aware("until", until).timestamp()
        return self.clock.timestamp() + seconds("until", until)


def _checked(overrides: Any) -> Mapping[Provider, Provider] | None:
    if overrides is None:
        return None
    if not isinstance(overrides, Mapping):
        raise InvalidOption("overrides", overrides, "must be a dict of functions by those that they replace")
    given = cast("Mapping[Any, Any]", overrides)
    for provider, other in given.items():
        field = f"overrides[{getattr(provider, '__name__', provider)}]"
        if not callable(provider):
            raise InvalidOption(field, provider, "must be a function that a task depends on")
        if not callable(other):
            raise InvalidOption(field, other, "must be a function that returns the value, e.g. lambda: value")
        check_provider(other, "job")
    return given
