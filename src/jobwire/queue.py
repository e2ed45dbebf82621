"""The producer's and operator's side of a queue."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, Unpack

from jobwire import codec
from jobwire.backend import Acted, Added, Capabilities, PreparedJob
from jobwire.coalesce import Coalescer
from jobwire.connection import Connection, resolve
from jobwire.demands import demand_job, demand_schedule
from jobwire.errors import InvalidOption, JobNotFound, WrongState
from jobwire.finishes import Finishes
from jobwire.model import Event, Job, Page, Schedule, State, WorkerInfo
from jobwire.options import DEFAULT_SIZE_LIMIT, JobOptions, NewJob, NewSchedule, Seconds, seconds, text, whole

_ADD_TOGETHER = 500


class Queue:
    """A queue that Python shares with whoever else speaks its protocol.

    Give a URL, a Connection to share, or nothing (JOBWIRE_URL, else an embedded server). `size_limit` bounds the
    encoded data of a job in bytes; None switches the check off.
    """

    def __init__(
        self, name: str, url: str | Connection | None = None, *, size_limit: int | None = DEFAULT_SIZE_LIMIT
    ) -> None:
        self.name = text("queue", name)
        self._size_limit = size_limit if size_limit is None else whole("size_limit", size_limit, minimum=1)
        self.connection, self._owns = resolve(url)
        self._backend = self.connection.backend
        self._adds: Coalescer[PreparedJob, Added] = Coalescer(self._send, _ADD_TOGETHER)
        self._finishes = Finishes(self._backend, name)

    @property
    def capabilities(self) -> Capabilities:
        """What this queue's protocol can do."""
        return self._backend.capabilities

    async def open(self) -> Self:
        await self.connection.open()
        await self._backend.register(self.name)
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

    async def add_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> list[Job]:
        """Add jobs in bulk, in order. All are checked before the first is written; a failure on the way leaves the
        ones before it added, so give ids to jobs that you would send again."""
        prepared = [self._prepare(job) for job in jobs]
        if connection is not None:
            self.capabilities.require("transactional_add", "add inside the caller's transaction")
        added = await self._backend.add(self.name, prepared, connection)
        return [self._snapshot(job, answer) for job, answer in zip(prepared, added, strict=True)]

    async def _send(self, jobs: Sequence[PreparedJob]) -> Sequence[Added]:
        return await self._backend.add(self.name, jobs)

    def _prepare(self, job: NewJob) -> PreparedJob:
        demand_job(self.capabilities, self.name, job)
        self._backend.check(self.name, job)
        data = codec.dumps(job.data)
        if self._size_limit is not None:
            codec.check_size(len(data), self._size_limit)
        return PreparedJob(job, job.name if job.name is not None else self.name, data)

    def _snapshot(self, job: PreparedJob, added: Added) -> Job:
        new, now = job.new, time.time()
        delay = new.delay_at(now)
        return Job(
            id=added.id,
            queue=self.name,
            name=job.name,
            data=new.data,
            state=State.DELAYED if delay > 0 else State.WAITING,
            priority=new.priority or 0,
            attempts=new.attempts or 1,
            created_at=datetime.fromtimestamp(now, UTC),
            run_at=datetime.fromtimestamp(now + delay, UTC),
            refused=added.refused,
            origin=self,
        )

    # --- reading ----------------------------------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job | None:
        """The job as it is now, or None."""
        [job] = await self._backend.get(self.name, [job_id])
        return None if job is None else replace(job, origin=self)

    async def jobs(self, state: State | str = State.WAITING, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Jobs in a state, in the order in which they would run; finished ones newest first.

        Go on with `cursor=page.cursor` until it is None. A queue that changes meanwhile may show a job twice or not.
        """
        page = await self._backend.jobs(self.name, _state(state), whole("limit", limit, minimum=1), cursor)
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

    # --- changing jobs ----------------------------------------------------------------------------------------------

    async def retry(self, job_id: str) -> None:
        """Run a finished job again."""
        self._expect(job_id, await self._backend.retry(self.name, [job_id]), "retried: it has not failed or completed")

    async def promote(self, job_id: str) -> None:
        """Make a delayed job ready now."""
        self.capabilities.require("promote", "promotion of delayed jobs")
        self._expect(job_id, await self._backend.promote(self.name, [job_id]), "promoted: it is not delayed")

    async def cancel(self, job_id: str) -> None:
        """Keep a job from being run; it stays readable as cancelled."""
        self.capabilities.require("cancel", "cancelled state")
        self._expect(job_id, await self._backend.cancel(self.name, [job_id]), "cancelled: it is not waiting")

    async def remove(self, job_id: str) -> None:
        """Delete the job and all that belongs to it."""
        self._expect(job_id, await self._backend.remove(self.name, [job_id]), "removed: its schedule needs it")

    def _expect(self, job_id: str, acted: Sequence[Acted], refusal: str) -> None:
        match acted[0]:
            case Acted.DONE:
                return
            case Acted.NOT_FOUND:
                raise JobNotFound(self.name, job_id)
            case Acted.LOCKED:
                raise WrongState(f"job {job_id!r} can't be changed: a worker is running it")
            case Acted.WRONG_STATE:
                raise WrongState(f"job {job_id!r} can't be {refusal}")

    # --- changing the queue -----------------------------------------------------------------------------------------

    async def pause(self) -> None:
        """Stop all workers of the queue from claiming; running jobs go on."""
        self.capabilities.require("pause", "pause")
        await self._backend.pause(self.name)

    async def resume(self) -> None:
        self.capabilities.require("pause", "pause")
        await self._backend.resume(self.name)

    async def paused(self) -> bool:
        self.capabilities.require("pause", "pause")
        return await self._backend.paused(self.name)

    async def drain(self, *, delayed: bool = False) -> None:
        """Delete the jobs that wait, and the delayed ones if asked. Running and finished jobs stay."""
        await self._backend.drain(self.name, delayed)

    async def clean(
        self, state: State | str = State.COMPLETED, *, older_than: Seconds = 0, limit: int = 0
    ) -> Sequence[str]:
        """Delete up to `limit` (0: all) jobs that are in the state for longer than that; returns their ids."""
        age = seconds("older_than", older_than)
        return await self._backend.clean(self.name, _state(state), age, whole("limit", limit, minimum=0))

    async def obliterate(self, *, force: bool = False) -> None:
        """Delete the queue and everything in it. WrongState if jobs are running, unless forced."""
        await self._backend.obliterate(self.name, force)

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


def _state(value: State | str) -> State:
    try:
        return State(value)
    except ValueError:
        raise InvalidOption("state", value, f"must be one of {', '.join(State)}") from None
