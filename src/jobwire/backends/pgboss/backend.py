"""pg-boss behind jobwire's boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.operate.admin import Admin
from jobwire.backends.pgboss.operate.diagnose import PgDiagnosis
from jobwire.backends.pgboss.operate.pause import PgPause
from jobwire.backends.pgboss.operate.queue_list import PgQueueList
from jobwire.backends.pgboss.operate.read import Reading
from jobwire.backends.pgboss.produce.add import Adding
from jobwire.backends.pgboss.produce.dependencies import PgDependencies
from jobwire.backends.pgboss.produce.schedules import PgSchedules
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.pgboss.rules import CAPABILITIES, check, check_worker
from jobwire.backends.pgboss.upkeep.cron import CronPass
from jobwire.backends.pgboss.upkeep.duties import Duties
from jobwire.backends.pgboss.upkeep.supervise import Supervision
from jobwire.backends.pgboss.work import rate_limit
from jobwire.backends.pgboss.work.consumer import PgConsumer
from jobwire.backends.pgboss.work.job_transactions import PgTransactions
from jobwire.backends.pgboss.work.key_limits import PgKeyLimits
from jobwire.backends.pgboss.work.progress_and_logs import PgLogs, PgProgress
from jobwire.backends.pgboss.worker_options import WorkerOptions
from jobwire.boundary import (
    Acted,
    Added,
    Backend,
    Capabilities,
    Consumer,
    ConsumerSettings,
    PreparedJob,
)
from jobwire.model import Job, Page, State
from jobwire.options import NewJob
from jobwire.urls import Address


class PgBossBackend:
    """Implements Backend. What only pg-boss has is in `native.boss`."""

    flows = None
    edits = None
    bulk = None
    events = None
    event_control = None
    limits = None
    unique_owners = None
    traces = None
    routing = None
    workers = None

    def __init__(self, address: Address, *, side_is_known: bool = False) -> None:
        self._address = address
        self.store = Store(address, side_is_known=side_is_known)
        self.queues = Queues(self.store)
        self.adding = Adding(self.store, self.queues)
        self.admin = Admin(self.store, self.queues)
        self._reading = Reading(self.store, self.queues)
        self.cancels = self.admin
        self.pause = PgPause(self.store)
        self.queue_list = PgQueueList(self.store, self.queues)
        self.diagnosis = PgDiagnosis(self.store, self.queues)
        self.progress = PgProgress(self.store, self.queues)
        self.logs = PgLogs(self.store, self.queues)
        self.schedules = PgSchedules(self.store, self.queues)
        self.transactions = PgTransactions()
        self.key_limits = PgKeyLimits()
        self.dependencies = PgDependencies(self.store, self.queues, self.adding)
        self.cron = CronPass(self.store, self.queues, self.adding)
        self.supervision = Supervision(self.store, self.queues)
        self._duties = Duties(self.store, self.queues, self.cron, self.supervision)

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def open(self, *, look_only: bool = False) -> None:
        await self.store.open(look_only=look_only)

    async def close(self) -> None:
        await self.store.close()

    def twin(self) -> Backend:
        return PgBossBackend(self._address, side_is_known=self.store.is_open)

    def check(self, queue: str, job: NewJob, data: bytes | None = None) -> None:
        check(job, data)

    async def register(self, queue: str) -> None:
        await self.queues.ensure(queue)

    async def add(self, queue: str, jobs: Sequence[PreparedJob], transaction: Any = None) -> Sequence[Added]:
        return await self.adding.add(queue, jobs, transaction)

    def check_worker(self, settings: ConsumerSettings) -> None:
        WorkerOptions.of(settings.native)
        check_worker(settings)

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        self.check_worker(settings)
        if rate_limit.is_wanted(settings, WorkerOptions.of(settings.native)):
            self.store.check_side("rate limits")
        return PgConsumer(self.store, self.queues, self._duties, settings)

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]:
        return await self._reading.get(queue, job_ids)

    async def jobs(
        self, queue: str, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
    ) -> Page:
        return await self._reading.jobs(queue, state, limit, cursor, skip=skip, reverse=reverse)

    async def counts(self, queue: str) -> Mapping[State, int]:
        return await self._reading.counts(queue)

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await self.admin.act("retry", queue, job_ids)

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await self.admin.act("promote", queue, job_ids)

    async def remove(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await self.admin.act("remove", queue, job_ids)

    async def drain(self, queue: str, delayed: bool) -> None:
        await self.admin.drain(queue, delayed)

    async def clean(self, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
        return await self.admin.clean(queue, state, older_than, limit)

    async def obliterate(self, queue: str, force: bool) -> None:
        await self.admin.obliterate(queue, force)
