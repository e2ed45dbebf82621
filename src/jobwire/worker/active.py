"""The job as a handler sees it: the snapshot, and what only the worker that runs it may do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from jobwire import codec
from jobwire.boundary import Acted, Backend, Claim, Feature
from jobwire.errors import JobNotFound, LostLock, WaitForChildren
from jobwire.flow import FlowJob, add_trees, prepare_tree
from jobwire.model import Children, Job, JobKey, JobTree
from jobwire.options import DEFAULT_SIZE_LIMIT, whole

Answer = TypeVar("Answer")
Part = TypeVar("Part")


class Leases(Protocol):
    """Who can renew a claim's lease on request."""

    async def renew(self, claim: Claim) -> bool: ...


class Running:
    """What both forms of a running job show."""

    __slots__ = ("_job",)

    def __init__(self, job: Job) -> None:
        self._job = job

    @property
    def snapshot(self) -> Job:
        """The job as it was when it was claimed."""
        return self._job

    @property
    def id(self) -> str:
        return self._job.id

    @property
    def queue(self) -> str:
        return self._job.queue

    @property
    def name(self) -> str:
        return self._job.name

    @property
    def data(self) -> Any:
        return self._job.data

    @property
    def priority(self) -> int:
        return self._job.priority

    @property
    def attempts(self) -> int | None:
        return self._job.attempts

    @property
    def attempts_made(self) -> int:
        """Runs that ended before this one."""
        return self._job.attempts_made

    @property
    def progress(self) -> Any:
        return self._job.progress

    @property
    def created_at(self) -> datetime | None:
        return self._job.created_at

    @property
    def started_at(self) -> datetime | None:
        return self._job.started_at

    @property
    def stacktrace(self) -> Sequence[str]:
        return self._job.stacktrace

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.name!r} of {self.queue!r}>"


class ActiveJob(Running):
    """A job that this worker runs right now."""

    __slots__ = ("_backend", "_cancelled", "_claim", "_leases", "_listeners", "_lost", "_lost_event")

    def __init__(self, claim: Claim, backend: Backend, leases: Leases) -> None:
        super().__init__(claim.job)
        self._claim = claim
        self._backend = backend
        self._leases = leases
        self._cancelled = False
        self._lost = False
        self._lost_event: asyncio.Event | None = None
        self._listeners: list[Callable[[], None]] | None = None

    @property
    def token(self) -> str:
        """What tells this claim of the job from any other: a fence for the outside world."""
        return self._claim.token

    @property
    def claim(self) -> Claim:
        return self._claim

    @property
    def lost(self) -> asyncio.Event:
        """Set when the job's lock is gone: another worker may be running it."""
        if self._lost_event is None:
            self._lost_event = asyncio.Event()
            if self._lost:
                self._lost_event.set()
        return self._lost_event

    @property
    def cancelled(self) -> bool:
        """True once the worker wants the handler to stop: `worker.cancel`, the job's timeout, a lost lease, or the end
        of the time that running jobs have at shutdown."""
        return self._cancelled

    def mark_cancelled(self) -> None:
        """Called by the engine, in its event loop."""
        self._cancelled = True

    def mark_lost(self) -> None:
        """Called by the engine, in its event loop."""
        self._lost = True
        if self._lost_event is not None:
            self._lost_event.set()
        for listener in self._listeners or ():
            listener()

    def when_lost(self, listener: Callable[[], None]) -> None:
        if self._lost:
            listener()
        else:
            self._listeners = [*(self._listeners or ()), listener]

    async def update_progress(self, value: Any) -> None:
        """Publish how far the job is: any JSON value, by custom a number from 0 to 100."""
        progress = self._part(self._backend.progress, Feature.PROGRESS)
        encoded = codec.dumps(value, field="progress")
        self._expect(await progress.update_progress(self.queue, self.id, encoded))

    async def log(self, line: str, *, keep: int = 0) -> None:
        """Append a line to the job's log, keeping the last `keep` lines (0: all)."""
        logs = self._part(self._backend.logs, Feature.LOGS)
        kept = whole("keep", keep, minimum=0)
        self._expect(await logs.log(self.queue, self.id, str(line), kept))

    async def update_data(self, data: Any) -> None:
        """Replace the job's data, for its next run: where a handler that runs in steps notes how far it is."""
        edits = self._part(self._backend.edits, Feature.EDITS)
        encoded = codec.dumps(data)
        codec.check_size(len(encoded), DEFAULT_SIZE_LIMIT)
        self._expect(await edits.update_data(self.queue, self.id, encoded))

    async def add_children(self, *children: FlowJob) -> list[JobTree]:
        """Add jobs (or trees of them) that this job waits for, all or nothing. It goes on until it asks to wait."""
        self.require(Feature.FLOWS)
        above = JobKey(self.queue, self.id)
        return await add_trees(self._backend, [prepare_tree(self._backend, child, below=above) for child in children])

    async def children(self) -> Children:
        """What has become of the job's children so far."""
        return await self._part(self._backend.flows, Feature.FLOWS).children(self.queue, self.id)

    async def children_values(self) -> dict[JobKey, Any]:
        """Results of the children that completed."""
        return dict((await self.children()).values)

    async def wait_for_children(self) -> None:
        """Go on if all children are done. Otherwise this run ends here, and the job runs again, from the start and
        without an attempt charged, when they are; it fails then if a child fails whose `on_failure` is fail."""
        children = await self.children()
        if children.pending or children.failed:
            raise WaitForChildren

    async def connection(self, *, blocking: bool = False) -> Any:
        """The driver's connection to the store, for writes that commit together with the job's completion.

        Return to commit, raise to roll back; if the job is no longer ours, both its end and the writes are refused.
        """
        transactions = self._part(self._backend.transactions, Feature.TRANSACTIONS)
        return await transactions.connection(self._claim, blocking=blocking)

    def require(self, feature: Feature) -> None:
        """Raises NotSupported if the job's protocol lacks the feature."""
        self._backend.capabilities.require(feature)

    def _part(self, found: Part | None, feature: Feature) -> Part:
        return self._backend.capabilities.part(found, feature)

    async def extend(self) -> None:
        """Renew the lock now. The worker does so by itself; ask only to learn whether it is still yours."""
        if self._lost or not await self._leases.renew(self._claim):
            raise LostLock(f"job {self.id!r} is no longer ours: its lock ran out or was taken away")

    def _expect(self, acted: Acted) -> None:
        if acted is not Acted.DONE:
            raise JobNotFound(self.queue, self.id)


class BlockingJob(Running):
    """An ActiveJob for handlers that are plain functions: the same names, blocking the handler's thread."""

    __slots__ = ("_active", "_loop", "lost")

    def __init__(self, active: ActiveJob, loop: asyncio.AbstractEventLoop) -> None:
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
        """As ActiveJob's. A thread can't be interrupted: a handler that may run for long looks here now and then."""
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

    def connection(self) -> Any:
        """As ActiveJob's, with a blocking connection of the driver."""
        return self._run(self._active.connection(blocking=True))

    def _run(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
