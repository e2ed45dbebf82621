"""The producer's side of a queue: adding jobs, reading and awaiting them. What an operator does is in Operations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, Self, Unpack

from jobwire.backend import Added, PreparedJob
from jobwire.coalesce import Coalescer
from jobwire.connection import Connection, resolve
from jobwire.demands import demand_schedule
from jobwire.finishes import Finishes
from jobwire.model import Event, Job, Page, Schedule, State, WorkerInfo
from jobwire.operations import Operations, state_of
from jobwire.options import DEFAULT_SIZE_LIMIT, JobOptions, NewJob, NewSchedule, Seconds, seconds, text, whole
from jobwire.preparing import AddedJobs, prepare, snapshot

_ADD_TOGETHER = 500


class Queue(Operations):
    """A queue that Python shares with whoever else speaks its protocol.

    Give a URL, a Connection to share, or nothing (JOBWIRE_URL, else an embedded server). `size_limit` bounds a job's
    encoded data and options in bytes; None switches the check off. `events_max_len`: about how many events the
    queue keeps, from when it is opened; None leaves that as it is. `wait_for_store`: how long `open` waits for a store
    that is not there yet, as when containers start together.
    """

    def __init__(
        self,
        name: str,
        url: str | Connection | None = None,
        *,
        size_limit: int | None = DEFAULT_SIZE_LIMIT,
        events_max_len: int | None = None,
        wait_for_store: Seconds = 0.0,
    ) -> None:
        self.connection, self._owns = resolve(url)
        self._wait_for_store = seconds("wait_for_store", wait_for_store)
        super().__init__(text("queue", name), self.connection.backend)
        self._size_limit = size_limit if size_limit is None else whole("size_limit", size_limit, minimum=1)
        self._events_max_len = events_max_len
        if events_max_len is not None:
            whole("events_max_len", events_max_len, minimum=1)
            self.capabilities.require("custom_events", "control of the event stream")
        self._adds: Coalescer[PreparedJob, Added] = Coalescer(self._send, _ADD_TOGETHER)
        self._finishes = Finishes(self._backend, name)

    async def open(self) -> Self:
        await self.connection.open(self._wait_for_store)
        await self._backend.register(self.name)
        if self._events_max_len is not None:
            await self._limit_events(self._events_max_len)
        return self

    async def close(self) -> None:
        await self._adds.close()
        await self._finishes.close()
        if self._owns:
            await self.connection.close()

    async def __aenter__(self) -> Self:
        try:
            return await self.open()
        except BaseException:
            await self.close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} {self.connection.address.redacted}>"

    # --- adding -----------------------------------------------------------------------------------------------------

    async def add(
        self, data: Any = None, *, name: str | None = None, connection: Any = None, **options: Unpack[JobOptions]
    ) -> Job:
        """Add one job. Calls made at the same time share a round trip.

        With `connection` (where the protocol can): inside the caller's own transaction.
        """
        job = self._prepare(NewJob(data, name, **options))
        if connection is not None:
            self.capabilities.require("transactional_add", "add inside the caller's transaction")
            [added] = await self._backend.add(self.name, [job], connection)
        elif job.new.parent is not None:
            # It is refused if its parent is gone, and must not take other callers' jobs down with it.
            [added] = await self._backend.add(self.name, [job])
        else:
            added = await self._adds.put(job)
        return self._snapshot(job, added)

    async def add_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> Sequence[Job]:
        """Add jobs in bulk, in order. All are checked before the first is written; a failure on the way leaves the
        ones before it added, so give ids to jobs that you would send again."""
        prepared = [self._prepare(job) for job in jobs]
        if connection is not None:
            self.capabilities.require("transactional_add", "add inside the caller's transaction")
        added = await self._backend.add(self.name, prepared, connection)
        return AddedJobs(self.name, prepared, added, self)

    async def _send(self, jobs: Sequence[PreparedJob]) -> Sequence[Added]:
        return await self._backend.add(self.name, jobs)

    def _prepare(self, job: NewJob) -> PreparedJob:
        return prepare(self._backend, self.name, job, self._size_limit)

    def _snapshot(self, job: PreparedJob, added: Added) -> Job:
        return snapshot(self.name, job, added, self)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job | None:
        """The job as it is now, or None."""
        [job] = await self._backend.get(self.name, [job_id])
        return None if job is None else replace(job, origin=self)

    async def jobs(self, state: State | str = State.WAITING, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Jobs in a state, in the order in which they would run; finished ones newest first.

        Go on with `cursor=page.cursor` until it is None. A queue that changes meanwhile may show a job twice or not.
        """
        page = await self._backend.jobs(self.name, state_of(state), whole("limit", limit, minimum=1), cursor)
        return Page((replace(job, origin=self) for job in page), page.cursor)

    async def counts(self) -> Mapping[State, int]:
        """How many jobs are in each state."""
        return await self._backend.counts(self.name)

    async def logs(self, job_id: str) -> Sequence[str]:
        """The lines that handlers have logged for the job, oldest first."""
        self.capabilities.require("logs", "job logs")
        return await self._backend.logs(self.name, job_id)

    async def workers(self) -> Sequence[WorkerInfo]:
        """Workers that are connected to the queue, whatever language they are written in."""
        self.capabilities.require("workers", "list of workers")
        return await self._backend.workers(self.name)

    async def wait(self, job_id: str, timeout: float | None = None) -> Any:
        """The job's result once it has completed. Raises JobFailed, JobNotFound or WaitTimeout."""
        return await self._finishes.wait(job_id, timeout)

    async def events(self, since: str | None = None) -> AsyncIterator[Event]:
        """What happens on the queue, from now on or after the event whose id is given. Never ends by itself."""
        self.capabilities.require("events", "event stream")
        if since is None:
            since = await self._backend.cursor(self.name)
        async for event in self._backend.events(self.name, since):
            yield event

    # --- schedules --------------------------------------------------------------------------------------------------

    async def schedule(
        self,
        key: str,
        *,
        every: Seconds | None = None,
        cron: str | None = None,
        tz: str | None = None,
        name: str | None = None,
        data: Any = None,
        limit: int | None = None,
        start_at: datetime | None = None,
        end_at: datetime | None = None,
        immediately: bool = False,
        **options: Unpack[JobOptions],
    ) -> Schedule:
        """Create or replace a repeating job: one job per `every` seconds, or at the times of a cron expression."""
        job = NewJob(data, name, **options)
        schedule = NewSchedule(key, job, every, cron, tz, limit, start_at, end_at, immediately)
        demand_schedule(self.capabilities, self.name, schedule)
        return await self._backend.schedule(self.name, schedule, self._prepare(job))

    async def unschedule(self, key: str) -> bool:
        """Stop a repeating job; False if there was none."""
        self.capabilities.require("schedules", "schedules")
        return await self._backend.unschedule(self.name, text("key", key))

    async def schedules(self) -> Sequence[Schedule]:
        self.capabilities.require("schedules", "schedules")
        return await self._backend.schedules(self.name)
