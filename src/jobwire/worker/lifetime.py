"""One lifetime of a worker: from the start of `run` to its end.

It opens the store, enters the user's lifespan, and works until it is stopped or fails. Then it ends everything in the
reverse order. A worker that has stopped stays so, since `stop` may come before `run`. Only `run_until_idle` gives
its worker a new lifetime, for the next call.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from jobwire.connection import Connection
from jobwire.counted import counted
from jobwire.errors import WrongState
from jobwire.journal import Journal, working
from jobwire.worker.engines import Engines
from jobwire.worker.handler_tasks import contained_tasks
from jobwire.worker.loop_watch import LoopWatch
from jobwire.worker.observers import Observers
from jobwire.worker.processes import worker_stopping
from jobwire.worker.queue_handler import QueuePlan
from jobwire.worker.shutdown import shut_down, wait_for_first
from jobwire.worker.signals import signals_call
from jobwire.worker.stats import Observer, Stats

Lifespan = Callable[[], AbstractAsyncContextManager[object]]
Beside = Callable[[Engines], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Limits:
    """The options of a worker as a whole, checked. Durations are in seconds."""

    concurrency: int
    shutdown_timeout: float
    call_timeout: float
    max_reconnects: int
    wait_for_store: float


class Lifetime:
    """Runs a worker once."""

    def __init__(
        self,
        worker_id: str,
        plans: Mapping[str, QueuePlan],
        stats: Mapping[str, Stats],
        connection: Connection,
        *,
        owns_connection: bool,
        lifespan: Lifespan,
        limits: Limits,
    ) -> None:
        self._plans = plans
        self._stats = stats
        self._connection = connection
        self._owns = owns_connection
        self._lifespan = lifespan
        self._limits = limits
        self.journal = Journal(worker_id, ", ".join(plans))
        self._journals = {queue: Journal(worker_id, queue, names_queue=len(plans) > 1) for queue in plans}
        self.engines: Engines | None = None
        self.begun = False
        self.stopping = asyncio.Event()
        self.ended = asyncio.Event()
        self._now = asyncio.Event()
        self._entering: asyncio.Task[Any] | None = None

    async def run(
        self, observers: Collection[Observer], paused: Collection[str], *, signals: bool, beside: Beside | None = None
    ) -> None:
        """Works until it is stopped. `beside` runs as long as the engines."""
        if self.begun and not self.ended.is_set():
            raise WrongState("the worker is running already")
        self.begun = True
        try:
            with signals_call(self.interrupt) if signals else contextlib.nullcontext():
                if await self._reach_store():
                    async with contextlib.AsyncExitStack() as stack:
                        if await self._enter_lifespan(stack):
                            with contained_tasks():
                                await self._work(tuple(observers), paused, beside)
        finally:
            self.ended.set()

    async def stop(self, *, now: bool) -> None:
        """Returns when the worker has ended, if it has begun."""
        self.stop_claiming()
        if now:
            self._now.set()
        if self.begun:
            await self.ended.wait()

    def interrupt(self) -> None:
        """Stops the worker. If it is stopping already, releases the running jobs at once."""
        if self.stopping.is_set():
            self._now.set()
            if self._entering is not None:
                self._entering.cancel()
        self.stop_claiming()

    def stop_claiming(self) -> None:
        self.stopping.set()
        if self.engines is not None:
            self.engines.finish()

    # --- its steps --------------------------------------------------------------------------------------------------

    async def _reach_store(self) -> bool:
        """Opens the connection, which may wait for the store. Returns False if the worker was stopped meanwhile."""
        wait = self._limits.wait_for_store
        opening = asyncio.create_task(self._connection.open(wait))
        try:
            await wait_for_first(opening, self.stopping if wait else None)
        finally:
            opening.cancel()
            await asyncio.wait({opening})
        if opening.cancelled() and self._owns:
            await self._connection.close()
        return not opening.cancelled() and opening.result() is self._connection

    async def _enter_lifespan(self, stack: contextlib.AsyncExitStack) -> bool:
        """Enters the lifespan, which is the user's code. Returns False if a second signal has ended that."""
        self._entering = asyncio.current_task()
        try:
            await stack.enter_async_context(self._lifespan())
        except BaseException as error:
            if self._owns:
                await self._connection.close()
            if isinstance(error, asyncio.CancelledError) and self._now.is_set() and self._entering is not None:
                self._entering.uncancel()
                return False
            raise
        finally:
            self._entering = None
        return True

    async def _work(self, observers: tuple[Observer, ...], paused: Collection[str], beside: Beside | None) -> None:
        engines = self.engines = Engines(
            self._connection.backend,
            self._plans,
            stats=self._stats,
            journals=self._journals,
            observers=Observers(observers, self.journal),
            concurrency=self._limits.concurrency,
            call_timeout=self._limits.call_timeout,
            max_reconnects=self._limits.max_reconnects,
            paused=paused,
        )
        if self.stopping.is_set():
            engines.finish()  # before their first claim
        watch = LoopWatch(self.journal, engines.claim_of)
        context = copy_context()
        context.run(worker_stopping.set, self.stopping.is_set)
        context.run(working.set, self.journal.worker_id)
        work = asyncio.create_task(engines.run(), context=context)
        companion = None if beside is None else asyncio.create_task(beside(engines))
        queues = f"{'queue' if len(self._plans) == 1 else 'queues'} {', '.join(self._plans)}"
        self.journal.info("started on %s, concurrency %d", queues, self._limits.concurrency)
        engines.keeper.start()
        watch.start()
        try:
            await self._until_done(engines, work)
        finally:
            if companion is not None:
                companion.cancel()
            await shut_down(engines, work, connection=self._connection if self._owns else None, journal=self.journal)
            watch.stop()
            done = Stats.total(self._stats.values())
            self.journal.info("stopped: %d completed, %d failed", done.completed, done.failed)

    async def _until_done(self, engines: Engines, work: asyncio.Task[None]) -> None:
        await wait_for_first(work, self.stopping)
        if not work.done():
            engines.finish()
            self.journal.info("stopping: %s still running", counted(engines.busy, "job"))
            await wait_for_first(work, self._now, timeout=self._limits.shutdown_timeout)
        if work.done():
            work.result()
