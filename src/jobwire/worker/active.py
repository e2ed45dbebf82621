"""The job that a handler gets: what every holder of a claim can do, and what only a handler can do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from jobwire.boundary import Backend, Claim, Feature
from jobwire.errors import LostLock, WaitForChildren
from jobwire.flow import FlowJob, add_trees, prepare_tree
from jobwire.generics import In_co
from jobwire.held_job import HeldJob
from jobwire.model import Children, JobKey, JobTree
from jobwire.running_job import Running

Answer = TypeVar("Answer")


class Leases(Protocol):
    """Extends the lease of a claim on request."""

    async def extend(self, claim: Claim) -> bool: ...


class ActiveJob(HeldJob[In_co]):
    """A job that this worker is running. `ActiveJob[Order]` is one whose data is an Order."""

    __slots__ = ("_cancelled", "_leases", "_listeners", "_lost", "_lost_event")

    def __init__(self, claim: Claim, backend: Backend, leases: Leases) -> None:
        super().__init__(claim, backend)
        self._leases = leases
        self._cancelled = False
        self._lost = False
        self._lost_event: asyncio.Event | None = None
        self._listeners: list[Callable[[], None]] | None = None

    @property
    def lost(self) -> asyncio.Event:
        """Set when the job's lease is lost: another worker may be running it."""
        if self._lost_event is None:
            self._lost_event = asyncio.Event()
            if self._lost:
                self._lost_event.set()
        return self._lost_event

    @property
    def cancelled(self) -> bool:
        """True once the handler has to stop: after `worker.cancel`, the job's timeout, a lost lease, or the end of the
        time that running jobs have at shutdown."""
        return self._cancelled

    def mark_cancelled(self) -> None:
        """Sets `cancelled`. Called by the engine, in its event loop."""
        self._cancelled = True

    def mark_lost(self) -> None:
        """Sets `lost`. Called by the engine, in its event loop."""
        self._lost = True
        if self._lost_event is not None:
            self._lost_event.set()
        for listener in self._listeners or ():
            listener()

    def when_lost(self, listener: Callable[[], None]) -> None:
        """Calls the listener when the lease is lost, or now if it is."""
        if self._lost:
            listener()
        else:
            self._listeners = [*(self._listeners or ()), listener]

    async def add_children(self, *children: FlowJob) -> list[JobTree]:
        """Adds jobs (or trees of them) that this job waits for, all or nothing. The handler goes on: it waits for them
        with `wait_for_children`."""
        self.require(Feature.FLOWS)
        above = JobKey(self.queue, self.id)
        return await add_trees(self._backend, [prepare_tree(self._backend, child, below=above) for child in children])

    async def wait_for_children(self) -> None:
        """Returns if all children have finished. Otherwise this run ends here without charging an attempt, and the job
        runs again, from the start, when they have. It fails instead if a child fails whose `on_failure` is fail."""
        children = await self.children()
        if children.pending or children.failed:
            raise WaitForChildren

    async def transaction(self, *, blocking: bool = False) -> Any:
        """Returns the driver's connection, in a transaction: what is written on it commits with the job's completion.

        Return to commit, raise to roll back; if the job is no longer ours, both its end and the writes are refused.
        """
        transactions = self._part(self._backend.transactions, Feature.TRANSACTIONS)
        return await transactions.transaction(self._claim, blocking=blocking)

    async def extend(self) -> None:
        """Extends the lease now. The worker does that by itself, so call this only to find out if the lease is lost:
        it raises LostLock then."""
        if self._lost or not await self._leases.extend(self._claim):
            raise LostLock(f"job {self.id!r} is no longer ours: its lease has ended or was taken away")


class BlockingJob(Running[In_co]):
    """An ActiveJob for handlers that are plain functions. Its methods have the same names and block the thread."""

    __slots__ = ("_active", "_loop", "lost")

    def __init__(self, active: ActiveJob[In_co], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(active.snapshot)
        self._active = active
        self._loop = loop
        self.lost = threading.Event()
        active.when_lost(self.lost.set)

    @property
    def token(self) -> str:
        return self._active.token

    @property
    def cancelled(self) -> bool:
        """True once the handler has to stop. A thread can't be interrupted, so a long handler must check this."""
        return self._active.cancelled

    def update_progress(self, value: Any) -> None:
        self._run(self._active.update_progress(value))

    def log(self, line: str, *, keep: int = 0) -> None:
        self._run(self._active.log(line, keep=keep))

    def extend(self) -> None:
        self._run(self._active.extend())

    def update_data(self, data: Any) -> None:
        self._run(self._active.update_data(data))

    def add_children(self, *children: FlowJob) -> list[JobTree]:
        return self._run(self._active.add_children(*children))

    def children(self) -> Children:
        return self._run(self._active.children())

    def children_values(self) -> dict[JobKey, Any]:
        return dict(self.children().values)

    def wait_for_children(self) -> None:
        self._run(self._active.wait_for_children())

    def transaction(self) -> Any:
        """As ActiveJob's, with a blocking connection of the driver."""
        return self._run(self._active.transaction(blocking=True))

    def _run(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
