"""pg-boss behind jobwire's boundary."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from jobwire.backend import Acted, Added, Backend, Capabilities, Claim, Consumer, ConsumerSettings, PreparedJob
from jobwire.backends.pgboss import pace
from jobwire.backends.pgboss.adding import Adding
from jobwire.backends.pgboss.admin import Admin
from jobwire.backends.pgboss.claims import PgClaim
from jobwire.backends.pgboss.consumer import PgConsumer
from jobwire.backends.pgboss.cron_pass import CronPass
from jobwire.backends.pgboss.duties import Duties
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.pgboss.reading import Reading
from jobwire.backends.pgboss.rules import CAPABILITIES, check
from jobwire.backends.pgboss.schedules import Schedules
from jobwire.backends.pgboss.store import Store
from jobwire.backends.pgboss.supervision import Supervision
from jobwire.backends.pgboss.worker_options import WorkerOptions
from jobwire.errors import NotSupported
from jobwire.model import Event, Job, Page, Schedule, State, WorkerInfo
from jobwire.options import NewJob, NewSchedule
from jobwire.urls import Address


class PgBossBackend:
    """Implements Backend. `boss` is the way to what only pg-boss has."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self.store = Store(address)
        self.queues = Queues(self.store)
        self.adding = Adding(self.store, self.queues)
        self.admin = Admin(self.store, self.queues)
        self._reading = Reading(self.store, self.queues)
        self._schedules = Schedules(self.store, self.queues)
        self.cron = CronPass(self.store, self.queues, self.adding)
        self.supervision = Supervision(self.store, self.queues)
        self._duties = Duties(self.store, self.cron, self.supervision)

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def open(self) -> None:
        await self.store.open()

    async def close(self) -> None:
        await self.store.close()

    def twin(self) -> Backend:
        return PgBossBackend(self._address)

    def check(self, queue: str, job: NewJob) -> None:
        check(job)

    async def register(self, queue: str) -> None:
        await self.queues.ensure(queue)

    async def add(self, queue: str, jobs: Sequence[PreparedJob], connection: Any = None) -> Sequence[Added]:
        return await self.adding.add(queue, jobs, connection)

    def check_worker(self, settings: ConsumerSettings) -> None:
        WorkerOptions.of(settings.native)
        if settings.strategy is not None or settings.strategies:
            raise NotSupported("pgboss", "backoff of a worker", "give the job backoff=Backoff.exponential(…)")
        if settings.keep_completed is not None or settings.keep_failed is not None:
            CAPABILITIES.require("keep", "keep_completed and keep_failed of a worker")

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        self.check_worker(settings)
        if pace.is_wanted(settings, WorkerOptions.of(settings.native)):
            self.store.check_side("rate limits")
        return PgConsumer(self.store, self.queues, self._duties, settings)

    async def connection(self, claim: Claim, *, blocking: bool) -> Any:
        assert isinstance(claim, PgClaim)  # noqa: S101 - made by this backend
        return await claim.connection(blocking=blocking)

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]:
        return await self._reading.get(queue, job_ids)

    async def jobs(
        self, queue: str, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
    ) -> Page:
        return await self._reading.jobs(queue, state, limit, cursor, skip=skip, reverse=reverse)

    async def counts(self, queue: str) -> Mapping[State, int]:
        return await self._reading.counts(queue)

    async def pause(self, queue: str) -> None:
        await self.admin.pause(queue)

    async def resume(self, queue: str) -> None:
        await self.admin.resume(queue)

    async def paused(self, queue: str) -> bool:
        return await self.admin.paused(queue)

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await self.admin.act("retry", queue, job_ids)

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await self.admin.act("promote", queue, job_ids)

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await self.admin.act("cancel", queue, job_ids)

    async def remove(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await self.admin.act("remove", queue, job_ids)

    async def drain(self, queue: str, delayed: bool) -> None:
        await self.admin.drain(queue, delayed)

    async def clean(self, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
        return await self.admin.clean(queue, state, older_than, limit)

    async def obliterate(self, queue: str, force: bool) -> None:
        await self.admin.obliterate(queue, force)

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted:
        return await self.admin.update_progress(queue, job_id, value)

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        return await self.admin.log(queue, job_id, line, keep)

    async def logs(self, queue: str, job_id: str) -> Sequence[str]:
        return await self.admin.logs(queue, job_id)

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        return await self._schedules.put(queue, schedule, job)

    async def unschedule(self, queue: str, key: str) -> bool:
        return await self._schedules.drop(queue, key)

    async def schedules(self, queue: str) -> Sequence[Schedule]:
        return await self._schedules.of(queue)

    async def cursor(self, queue: str) -> str:
        raise NotSupported("pgboss", "event stream", CAPABILITIES.nearest["events"])

    def events(self, queue: str, since: str) -> AsyncIterator[Event]:
        raise NotSupported("pgboss", "event stream", CAPABILITIES.nearest["events"])

    async def workers(self, queue: str) -> Sequence[WorkerInfo]:
        raise NotSupported("pgboss", "list of workers", CAPABILITIES.nearest["workers"])
