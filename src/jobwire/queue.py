"""Producers' and readers' half of a queue: adding jobs, claiming, reading and awaiting them. Operators' half is
`queue.admin`, in queue_admin.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, Self, Unpack

from jobwire import checks, forking, spelling
from jobwire.acted import require_done
from jobwire.boundary import Added, Backend, Capabilities, Feature, PreparedJob, Schedules
from jobwire.checks import Seconds, seconds, text, whole
from jobwire.claimed import ClaimedJob
from jobwire.claimer import Claimers
from jobwire.coalesce import Coalescer
from jobwire.connection import Connection, resolve
from jobwire.errors import InvalidOption
from jobwire.model import Children, Event, Job, Page, Schedule, State, state_of
from jobwire.options import DEFAULT_SIZE_LIMIT, NO_DATA, JobOptions, NewJob, NewSchedule, check_names
from jobwire.paging import job_pages
from jobwire.preparing import AddedJobs, defaults_of, prepare, snapshot, with_defaults
from jobwire.queue_access import QueueAccess
from jobwire.queue_admin import QueueAdmin, missing_attribute
from jobwire.required_features import require_for_schedule
from jobwire.result_waits import ResultWaits

_ADD_TOGETHER = 500
_all_new = frozenset({NewJob}).issuperset
_QUEUE_OPTIONS = ("size_limit", "events_max_len", "defaults", "wait_for_store", "trace")
_SCHEDULE_OPTIONS = ("every", "cron", "tz", "name", "data", "limit", "start_at", "end_at", "immediately")


def _not_a_new_job(field: str, given: object) -> InvalidOption:
    return InvalidOption(field, given, "must be a NewJob, e.g. NewJob({'to': 'a@example.com'})")


@spelling.methods_refuse_typos("queue", "jobs", "claim", "wait")
class Queue:
    """A queue that Python shares with every other client of its protocol.

    Give a URL, a Connection to share, or nothing (JOBWIRE_URL, else an embedded server). It opens at its first use,
    or earlier with `async with` or `open`, which also find out at once that a store can't be reached. `size_limit`
    bounds a job's encoded data and options in bytes; None switches the check off. `events_max_len`: about how many
    events the queue keeps, from when it is opened; None leaves that as it is. `defaults` are the options of every job
    that is added without its own: `Queue("emails", defaults={"attempts": 3})`. Schedules and flows have none.
    `wait_for_store`: how long opening waits for a store that is not there yet, as when containers start together.
    `trace` returns the headers of the current trace, as `jobwire.observe.tracing.current_trace` does. They are stored
    with each job if the protocol has a field for them.

    `admin` has the operators' methods: retry, remove, promote, pause, drain, limits and more.
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
        trace: Callable[[], Mapping[str, str]] | None = None,
        **unknown: Never,
    ) -> None:
        for option, value in unknown.items():
            raise spelling.unknown(option, value, _QUEUE_OPTIONS, "a Queue")
        self.name = text("queue", name)
        self._size_limit = size_limit if size_limit is None else whole("size_limit", size_limit, minimum=1)
        self.connection, self._owns = resolve(url)
        self._wait_for_store = seconds("wait_for_store", wait_for_store)
        self._defaults = defaults_of(checks.mapping("defaults", defaults)) if defaults else None
        if trace is not None:
            rule = "must be a function that returns headers, such as current_trace"
            checks.function("trace", trace, 0, rule, plain=True)
        self._trace = trace
        if events_max_len is not None:
            whole("events_max_len", events_max_len, minimum=1)
            self.capabilities.require(Feature.EVENT_CONTROL)
        self._access = QueueAccess(name, self.connection, events_max_len)
        self.admin = QueueAdmin(self._access, self._size_limit)
        self._renew()
        forking.follow(self, Queue._renew)

    def _renew(self) -> None:
        """Makes the parts that belong to one process, and in it to one event loop: those of one backend."""
        self._parts_of = self.connection.backend
        self._adds: Coalescer[PreparedJob, Added] = Coalescer(self._send, _ADD_TOGETHER)
        self._result_waits = ResultWaits(self.connection.backend, self.name)
        self._claimers = Claimers(self.name)

    @property
    def capabilities(self) -> Capabilities:
        """The features of this queue's protocol."""
        return self.connection.backend.capabilities

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            raise missing_attribute(type(self).__name__, name)

    async def open(self) -> Self:
        """Connects to the store and makes the queue known to peers."""
        await self._access.open(self._wait_for_store)
        self._follow_backend()
        if self._adds.closed:
            self._adds = Coalescer(self._send, _ADD_TOGETHER)
        return self

    async def _backend(self) -> Backend:
        """Returns the backend, opened, once the parts are those of this event loop."""
        backend = await self._access.backend()
        self._follow_backend()
        return backend

    def _follow_backend(self) -> None:
        if self._parts_of is not self.connection.backend:
            self._renew()

    async def close(self) -> None:
        """Waits for the adds in progress, releases claimed jobs that are not settled, and disconnects."""
        self._access.close()
        self.connection.leave_closed_loop()
        self._follow_backend()
        await self._adds.close()
        await self._claimers.close()
        await self._result_waits.close()
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

    def __deepcopy__(self, memo: object) -> Self:
        """Returns this queue, so that a job that was read through it can be copied, as `dataclasses.asdict` does."""
        return self

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} {self.connection.address.redacted}>"

    # --- adding -----------------------------------------------------------------------------------------------------

    async def add(
        self, data: Any = NO_DATA, *, name: str | None = None, transaction: Any = None, **options: Unpack[JobOptions]
    ) -> Job:
        """Adds one job. Calls made at the same time share a round trip.

        With `transaction`, where the protocol can: inside the caller's own transaction, which is given as its driver's
        connection or session.
        """
        return await self.add_job(NewJob(data, name, **options), transaction=transaction)

    async def add_job(self, job: NewJob, *, transaction: Any = None) -> Job:
        """Adds one job that has been made as a NewJob. Otherwise like `add`."""
        if not isinstance(job, NewJob):  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
            raise _not_a_new_job("job", job)
        prepared = self._prepare(self._filled(job))
        if not self._access.is_open:
            await self._backend()
        if transaction is not None:
            self.capabilities.require(Feature.TRANSACTIONAL_ADD)
            [added] = await self.connection.backend.add(self.name, [prepared], transaction)
        elif job.parent is not None:
            # It is refused if its parent is gone, and must not take other callers' jobs down with it.
            [added] = await self.connection.backend.add(self.name, [prepared])
        else:
            added = await self._adds.put(prepared)
        return self._snapshot(prepared, added)

    async def add_many(self, jobs: Iterable[NewJob], *, transaction: Any = None, **unknown: Never) -> Sequence[Job]:
        """Adds jobs in bulk, in order. All are checked before the first is written. If the store fails on the way, the
        jobs before that stay added, so give ids to jobs that you would send again."""
        for option, value in unknown.items():
            raise spelling.unknown(option, value, ("transaction",), "add_many")
        given = checks.items("jobs", jobs, "NewJobs")
        if not _all_new({*map(type, given)}):
            for index, job in enumerate(given):
                if not isinstance(job, NewJob):
                    raise _not_a_new_job(f"jobs[{index}]", job)
        if self._defaults is not None or self._trace is not None:
            given = [self._filled(job) for job in given]
        backend, name, limit = self.connection.backend, self.name, self._size_limit
        prepared = [prepare(backend, name, job, limit) for job in given]
        if transaction is not None:
            self.capabilities.require(Feature.TRANSACTIONAL_ADD)
        added = await (await self._access.backend()).add(self.name, prepared, transaction)
        return AddedJobs(self.capabilities, self.name, prepared, added, self)

    async def _send(self, jobs: Sequence[PreparedJob]) -> Sequence[Added]:
        return await self.connection.backend.add(self.name, jobs)

    def _filled(self, job: NewJob) -> NewJob:
        if self._defaults is not None:
            job = with_defaults(job, self._defaults)
        traces = self.connection.backend.traces
        if self._trace is not None and traces is not None and (headers := self._trace()):
            job = replace(job, extra={**traces.job_options(headers), **job.extra})
        return job

    def _prepare(self, job: NewJob) -> PreparedJob:
        return prepare(self.connection.backend, self.name, job, self._size_limit)

    def _snapshot(self, job: PreparedJob, added: Added) -> Job:
        return snapshot(self.capabilities, self.name, job, added, self)

    async def cancel(self, job_id: str) -> None:
        """Keeps a waiting job from being run. It stays readable, as cancelled."""
        wanted = checks.job_id(job_id)
        cancels = await self._access.part(lambda backend: backend.cancels, Feature.CANCEL)
        [acted] = await cancels.cancel(self.name, [wanted])
        require_done(self.name, wanted, acted, "cancelled: it is not waiting")

    # --- claiming by hand -------------------------------------------------------------------------------------------

    async def claim(
        self,
        *,
        timeout: Seconds | None = 0.0,
        lease: Seconds = 30.0,
        worker_id: str | None = None,
        native: object | None = None,
    ) -> ClaimedJob | None:
        """Claims the next job, for a program that has a loop of its own instead of a handler. Returns None if there is
        none.

        `timeout` is how long to wait for a job; None waits without end. The job is ours for `lease`, which only its
        `extend` renews. Claims made at the same time share a round trip. Jobs that are not settled when the queue is
        closed are released. `worker_id` and `native` are as for a Worker.
        """
        wait = checks.timeout(timeout)
        settings = self._claimers.settings(self.connection.backend, lease, worker_id, native)
        backend = await self._backend()
        return await self._claimers.get(backend, settings, worker_id).claim(wait)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job | None:
        """Returns the job as it is now, or None."""
        wanted = checks.job_id(job_id)
        [job] = await (await self._access.backend()).get(self.name, [wanted])
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
        page = await (await self._access.backend()).jobs(self.name, *asked, skip=passed, reverse=backward)
        return Page((replace(job, origin=self) for job in page), page.cursor)

    async def iter_jobs(
        self, state: State | str = State.WAITING, *, reverse: bool = False, page_size: int = 500
    ) -> AsyncIterator[Job]:
        """Yields all jobs in a state, in the order of `jobs`, and reads them from the store `page_size` at a time.

        The caller may remove, retry or promote the jobs that it is given. A job is shown as it was when its page was
        read, which is one page ahead. If the queue changes meanwhile, a job that keeps its state and position is shown.
        One that is added or moved may be shown or not, and one that leaves the state and returns may be shown twice.
        """
        async for page in job_pages(self, state, reverse=reverse, page_size=page_size):
            for job in page:
                yield job

    async def counts(self) -> Mapping[State, int]:
        """Returns the number of jobs in each state."""
        return await (await self._access.backend()).counts(self.name)

    async def logs(self, job_id: str, *, last: int | None = None) -> Sequence[str]:
        """Returns the lines that handlers have logged for the job, oldest first. With `last`, reads only the newest
        lines, so many of them."""
        wanted = checks.job_id(job_id)
        newest = 0 if last is None else whole("last", last, minimum=1)
        part = await self._access.part(lambda backend: backend.logs, Feature.LOGS)
        return await part.logs(self.name, wanted, newest)

    async def children(self, job_id: str) -> Children:
        """Returns the states of the job's children."""
        wanted = checks.job_id(job_id)
        flows = await self._access.part(lambda backend: backend.flows, Feature.FLOWS)
        return await flows.children(self.name, wanted)

    async def wait(self, job_id: str, timeout: Seconds | None = None) -> Any:
        """Waits until the job has completed and returns its result. Raises JobFailed, JobNotFound or WaitTimeout."""
        wanted, limit = checks.job_id(job_id), checks.timeout(timeout)
        await self._backend()
        return await self._result_waits.wait(wanted, limit)

    async def events(self, since: str | None = None) -> AsyncIterator[Event]:
        """Yields the events of the queue, from now on or after the event whose id is given. Never ends by itself."""
        cursor = checks.cursor("since", since)
        stream = await self._access.part(lambda backend: backend.events, Feature.EVENTS)
        if cursor is None:
            cursor = await stream.cursor(self.name)
        async for event in stream.events(self.name, cursor):
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
        """Creates or replaces a repeating job: one job per `every` seconds, or at the times of a cron expression."""
        check_names(options, _SCHEDULE_OPTIONS, "a schedule")
        job = NewJob(data, name, **options)
        schedule = NewSchedule(key, job, every, cron, tz, limit, start_at, end_at, immediately)
        require_for_schedule(self.capabilities, self.name, schedule)
        prepared = self._prepare(job)
        return await (await self._schedules()).schedule(self.name, schedule, prepared)

    async def unschedule(self, key: str) -> bool:
        """Stops a repeating job. Returns False if there was none."""
        # A peer's schedule may have an empty key: Node pg-boss stores those without one so.
        nameless = key == "" and any(not one.key for one in await self.schedules())
        wanted = key if nameless else text("key", key)
        return await (await self._schedules()).unschedule(self.name, wanted)

    async def schedules(self) -> Sequence[Schedule]:
        return await (await self._schedules()).schedules(self.name)

    async def search_schedules(self, most: int) -> tuple[Sequence[Schedule], bool]:
        """Returns the schedules, and True if these are all. A store without a list of them searches `most` jobs."""
        return await (await self._schedules()).search(self.name, whole("most", most, minimum=1))

    async def _schedules(self) -> Schedules:
        return await self._access.part(lambda backend: backend.schedules, Feature.SCHEDULES)
