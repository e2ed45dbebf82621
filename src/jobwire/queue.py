"""The producer's side of a queue: adding jobs, reading and awaiting them. What an operator does is in Operations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, Never, Self, Unpack

from jobwire import forking, spelling
from jobwire import options as checks
from jobwire.boundary import Added, Backend, Feature, PreparedJob, Schedules
from jobwire.claimed import ClaimedJob
from jobwire.claimer import Claimers
from jobwire.coalesce import Coalescer
from jobwire.connection import Connection, resolve
from jobwire.errors import Closed, InvalidOption
from jobwire.finishes import Finishes
from jobwire.model import Event, Job, Page, Schedule, State, WorkerInfo
from jobwire.operations import Operations, state_of
from jobwire.options import (
    DEFAULT_SIZE_LIMIT,
    NO_DATA,
    JobOptions,
    NewJob,
    NewSchedule,
    Seconds,
    seconds,
    text,
    whole,
)
from jobwire.preparing import AddedJobs, defaults_of, prepare, snapshot, with_defaults
from jobwire.required_features import require_for_schedule

_ADD_TOGETHER = 500
_all_new = frozenset({NewJob}).issuperset
_SCHEDULE_OPTIONS = ("every", "cron", "tz", "name", "data", "limit", "start_at", "end_at", "immediately")


class Queue(Operations):
    """A queue that Python shares with whoever else speaks its protocol.

    Give a URL, a Connection to share, or nothing (JOBWIRE_URL, else an embedded server). It opens at its first use,
    or earlier with `async with` or `open`, which also find out at once that a store can't be reached. `size_limit`
    bounds a job's encoded data and options in bytes; None switches the check off. `events_max_len`: about how many
    events the queue keeps, from when it is opened; None leaves that as it is. `defaults` are the options of every job
    that is added without its own: `Queue("emails", defaults={"attempts": 3})`. Schedules and flows have none.
    `wait_for_store`: how long opening waits for a store that is not there yet, as when containers start together.
    """

    def __init__(
        self,
        name: str,
        url: str | Connection | None = None,
        *,
        size_limit: int | None = DEFAULT_SIZE_LIMIT,
        events_max_len: int | None = None,
        defaults: JobOptions | None = None,
        wait_for_store: Seconds = 0.0,
        **unknown: Never,
    ) -> None:
        for option, value in unknown.items():
            raise spelling.unknown(option, value, ("size_limit", "events_max_len"), "a Queue")
        limit = size_limit if size_limit is None else whole("size_limit", size_limit, minimum=1)
        self.connection, self._owns = resolve(url)
        self._wait_for_store = seconds("wait_for_store", wait_for_store)
        super().__init__(text("queue", name), self.connection.backend, limit)
        self._defaults = defaults_of(defaults) if defaults else None
        self._events_max_len = events_max_len
        if events_max_len is not None:
            whole("events_max_len", events_max_len, minimum=1)
            self.capabilities.require(Feature.EVENT_CONTROL)
        self._adds: Coalescer[PreparedJob, Added] = Coalescer(self._send, _ADD_TOGETHER)
        self._finishes = Finishes(self._backend, name)
        self._claimers = Claimers(name)
        self._is_open = False
        self._closed = False
        self._opening = asyncio.Lock()
        forking.follow(self, Queue._after_fork)

    def _after_fork(self) -> None:
        self._backend = self.connection.backend
        self._adds = Coalescer(self._send, _ADD_TOGETHER)
        self._finishes = Finishes(self._backend, self.name)
        self._claimers = Claimers(self.name)
        self._opening = asyncio.Lock()

    async def open(self) -> Self:
        """Reach the store and make the queue known to peers."""
        await self.connection.open(self._wait_for_store)
        async with self._opening:
            await self._prepare_queue()
        return self

    async def _prepare_queue(self) -> None:
        if self._is_open:
            return
        await self._backend.register(self.name)
        if self._events_max_len is not None:
            control = self.capabilities.part(self._backend.event_control, Feature.EVENT_CONTROL)
            await control.limit_events(self.name, self._events_max_len)
        if self._closed:
            self._adds = Coalescer(self._send, _ADD_TOGETHER)
        self._is_open, self._closed = True, False

    async def _reach(self) -> Backend:
        """The backend, opened if this is the queue's first use."""
        if not (self._is_open and self.connection.is_open):
            if self._closed:
                raise Closed(f"queue {self.name!r} has been closed")
            await self.connection.reach()
            async with self._opening:
                await self._prepare_queue()
        return self._backend

    async def close(self) -> None:
        """Wait for the adds that are under way, release claimed jobs that are not settled, let go of the store."""
        self._is_open, self._closed = False, True
        await self._adds.close()
        await self._claimers.close()
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
        self, data: Any = NO_DATA, *, name: str | None = None, transaction: Any = None, **options: Unpack[JobOptions]
    ) -> Job:
        """Add one job. Calls made at the same time share a round trip.

        With `transaction`, where the protocol can: inside the caller's own transaction, which is given as its driver's
        connection or session.
        """
        job = self._prepare(self._filled(NewJob(data, name, **options)))
        if not (self._is_open and self.connection.is_open):
            await self._reach()
        if transaction is not None:
            self.capabilities.require(Feature.TRANSACTIONAL_ADD)
            [added] = await self._backend.add(self.name, [job], transaction)
        elif job.new.parent is not None:
            # It is refused if its parent is gone, and must not take other callers' jobs down with it.
            [added] = await self._backend.add(self.name, [job])
        else:
            added = await self._adds.put(job)
        return self._snapshot(job, added)

    async def add_many(self, jobs: Iterable[NewJob], *, transaction: Any = None, **unknown: Never) -> Sequence[Job]:
        """Add jobs in bulk, in order. All are checked before the first is written; a failure on the way leaves the
        ones before it added, so give ids to jobs that you would send again."""
        for option, value in unknown.items():
            raise spelling.unknown(option, value, ("transaction",), "add_many")
        given = list(jobs)
        if not _all_new({*map(type, given)}):
            place, job = next((place, job) for place, job in enumerate(given) if type(job) is not NewJob)
            raise InvalidOption(f"jobs[{place}]", job, "must be a NewJob, e.g. NewJob({'to': 'a@example.com'})")
        prepared = [self._prepare(self._filled(job)) for job in given]
        if transaction is not None:
            self.capabilities.require(Feature.TRANSACTIONAL_ADD)
        added = await (await self._reach()).add(self.name, prepared, transaction)
        return AddedJobs(self.capabilities, self.name, prepared, added, self)

    async def _send(self, jobs: Sequence[PreparedJob]) -> Sequence[Added]:
        return await self._backend.add(self.name, jobs)

    def _filled(self, job: NewJob) -> NewJob:
        return job if self._defaults is None else with_defaults(job, self._defaults)

    def _prepare(self, job: NewJob) -> PreparedJob:
        return prepare(self._backend, self.name, job, self._size_limit)

    def _snapshot(self, job: PreparedJob, added: Added) -> Job:
        return snapshot(self._backend.capabilities, self.name, job, added, self)

    # --- claiming by hand -------------------------------------------------------------------------------------------

    async def claim(
        self,
        *,
        timeout: Seconds | None = 0.0,
        lease: Seconds = 30.0,
        worker_id: str | None = None,
        native: object | None = None,
    ) -> ClaimedJob | None:
        """Claim the next job, for a program that has a loop of its own instead of a handler; None if there is none.

        `timeout` is how long to wait for a job; None waits without end. The job is ours for `lease`, which only its
        `extend` renews. Claims made at the same time share a round trip. Jobs that are not settled when the queue is
        closed are released. `worker_id` and `native` are as for a Worker.
        """
        wait = checks.timeout(timeout)
        settings = self._claimers.settings(self._backend, lease, worker_id, native)
        return await self._claimers.get(await self._reach(), settings, worker_id).claim(wait)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job | None:
        """The job as it is now, or None."""
        wanted = checks.job_id(job_id)
        [job] = await (await self._reach()).get(self.name, [wanted])
        return None if job is None else replace(job, origin=self)

    async def jobs(
        self,
        state: State | str = State.WAITING,
        *,
        limit: int = 100,
        cursor: str | None = None,
        skip: int = 0,
        reverse: bool = False,
    ) -> Page:
        """Jobs in a state, in the order in which they would run; finished ones newest first.

        Go on with `cursor=page.cursor` until it is None. A queue that changes meanwhile may show a job twice or not.
        `skip` leaves out the first jobs and can't be combined with a cursor. `reverse` turns the order round: the job
        that would run last comes first, of finished ones the oldest. With a cursor, `reverse` reads from the job that
        the cursor names back to the first one, whichever way the cursor's page was read.
        """
        asked = state_of(state), whole("limit", limit, minimum=1), checks.cursor("cursor", cursor)
        passed, backward = checks.skip(skip, asked[2]), checks.yes_or_no("reverse", reverse)
        page = await (await self._reach()).jobs(self.name, *asked, skip=passed, reverse=backward)
        return Page((replace(job, origin=self) for job in page), page.cursor)

    async def counts(self) -> Mapping[State, int]:
        """How many jobs are in each state."""
        return await (await self._reach()).counts(self.name)

    async def logs(self, job_id: str) -> Sequence[str]:
        """The lines that handlers have logged for the job, oldest first."""
        wanted = checks.job_id(job_id)
        return await (await self._reach_part(lambda backend: backend.logs, Feature.LOGS)).logs(self.name, wanted)

    async def workers(self) -> Sequence[WorkerInfo]:
        """Workers that are connected to the queue, whatever language they are written in."""
        return await (await self._reach_part(lambda backend: backend.workers, Feature.WORKERS)).workers(self.name)

    async def wait(self, job_id: str, timeout: Seconds | None = None) -> Any:
        """The job's result once it has completed. Raises JobFailed, JobNotFound or WaitTimeout."""
        wanted, limit = checks.job_id(job_id), checks.timeout(timeout)
        await self._reach()
        return await self._finishes.wait(wanted, limit)

    async def events(self, since: str | None = None) -> AsyncIterator[Event]:
        """What happens on the queue, from now on or after the event whose id is given. Never ends by itself."""
        place = checks.cursor("since", since)
        stream = await self._reach_part(lambda backend: backend.events, Feature.EVENTS)
        if place is None:
            place = await stream.cursor(self.name)
        async for event in stream.events(self.name, place):
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
        data: Any = NO_DATA,
        limit: int | None = None,
        start_at: datetime | None = None,
        end_at: datetime | None = None,
        immediately: bool = False,
        **options: Unpack[JobOptions],
    ) -> Schedule:
        """Create or replace a repeating job: one job per `every` seconds, or at the times of a cron expression."""
        checks.check_names(options, _SCHEDULE_OPTIONS, "a schedule")
        job = NewJob(data, name, **options)
        schedule = NewSchedule(key, job, every, cron, tz, limit, start_at, end_at, immediately)
        require_for_schedule(self.capabilities, self.name, schedule)
        prepared = self._prepare(job)
        return await (await self._schedules()).schedule(self.name, schedule, prepared)

    async def unschedule(self, key: str) -> bool:
        """Stop a repeating job; False if there was none."""
        wanted = text("key", key)
        return await (await self._schedules()).unschedule(self.name, wanted)

    async def schedules(self) -> Sequence[Schedule]:
        return await (await self._schedules()).schedules(self.name)

    async def _schedules(self) -> Schedules:
        return await self._reach_part(lambda backend: backend.schedules, Feature.SCHEDULES)
