"""The BullMQ protocol behind the boundary: its parts, and the methods that every backend has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobwire._version import __version__
from jobwire.backends.bullmq.connection import Server
from jobwire.backends.bullmq.operate import admin, read
from jobwire.backends.bullmq.operate.bulk import BullBulk
from jobwire.backends.bullmq.operate.diagnose import BullDiagnosis
from jobwire.backends.bullmq.operate.edits import BullEdits
from jobwire.backends.bullmq.operate.event_control import DEFAULT_EVENTS, BullEventControl
from jobwire.backends.bullmq.operate.events import BullEvents
from jobwire.backends.bullmq.operate.limits import BullLimits
from jobwire.backends.bullmq.operate.pause import BullPause
from jobwire.backends.bullmq.operate.queue_list import BullQueueList
from jobwire.backends.bullmq.operate.unique_owners import BullUniqueOwners
from jobwire.backends.bullmq.operate.workers import BullWorkers
from jobwire.backends.bullmq.produce.add import add
from jobwire.backends.bullmq.produce.flows import BullFlows
from jobwire.backends.bullmq.produce.schedules import BullSchedules
from jobwire.backends.bullmq.produce.traces import BullTraces
from jobwire.backends.bullmq.rules import CAPABILITIES, check
from jobwire.backends.bullmq.work.consumer import BullConsumer
from jobwire.backends.bullmq.work.progress_and_logs import BullLogs, BullProgress
from jobwire.backends.flow_dependencies import FlowDependencies
from jobwire.backends.redisio.server_check import check_server
from jobwire.boundary import Acted, Added, Backend, Capabilities, Consumer, ConsumerSettings, Feature, PreparedJob
from jobwire.model import Job, Page, State
from jobwire.native import BullMQWorker, of_kind
from jobwire.options import NewJob
from jobwire.urls import Address


class BullMQ:
    """Implements Backend."""

    cancels = None
    key_limits = None
    routing = None
    transactions = None

    def __init__(self, address: Address) -> None:
        self._address = address
        self._server = server = Server(address)
        self.flows = BullFlows(server)
        self.dependencies = FlowDependencies(self.flows)
        self.edits = BullEdits(server)
        self.bulk = BullBulk(server)
        self.pause = BullPause(server)
        self.progress = BullProgress(server)
        self.logs = BullLogs(server)
        self.schedules = BullSchedules(server)
        self.events = BullEvents(server)
        self.event_control = BullEventControl(server)
        self.limits = BullLimits(server)
        self.unique_owners = BullUniqueOwners(server)
        self.traces = BullTraces()
        self.workers = BullWorkers(server)
        self.queue_list = BullQueueList(server)
        self.diagnosis = BullDiagnosis(server)

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def open(self, *, look_only: bool = False) -> None:
        await self._server.store.open()
        await check_server(self._server.store, "bullmq")

    async def close(self) -> None:
        await self._server.store.close()

    def twin(self) -> Backend:
        return BullMQ(self._address)

    def check(self, queue: str, job: NewJob, data: bytes | None = None) -> bytes:
        self._server.keys(queue)
        options = check(self._server.prefix, job)
        if job.parent is not None:
            self._server.check_together([queue, job.parent.queue])
        return options

    async def register(self, queue: str) -> None:
        """Writes the fields that BullMQ's Queue writes when it is constructed. Keeps a limit of events that exists."""
        meta = self._server.keys(queue).meta
        await self._server.store.calls(
            [
                ("HSETNX", meta, "opts.maxLenEvents", DEFAULT_EVENTS),
                ("HSET", meta, "version", f"jobwire:{__version__}"),
            ]
        )

    async def add(self, queue: str, jobs: Sequence[PreparedJob], transaction: Any = None) -> Sequence[Added]:
        if transaction is not None:
            CAPABILITIES.require(Feature.TRANSACTIONAL_ADD)
        return await add(self._server.store, self._server.scripts, self._server.keys(queue), jobs)

    def check_worker(self, settings: ConsumerSettings) -> None:
        self._server.keys(settings.queue)
        of_kind(BullMQWorker, settings.native, "BullMQ")

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        return BullConsumer(self._server.store, self._server.scripts, self._server.keys(settings.queue), settings)

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]:
        return await read.get(self._server, queue, job_ids)

    async def jobs(
        self, queue: str, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
    ) -> Page:
        return await read.jobs(self._server, queue, state, limit, cursor, skip=skip, reverse=reverse)

    async def counts(self, queue: str) -> Mapping[State, int]:
        return await read.counts(self._server, queue)

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.retry(self._server, queue, job_ids)

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.promote(self._server, queue, job_ids)

    async def remove(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.remove(self._server, queue, job_ids, children=True)

    async def drain(self, queue: str, delayed: bool) -> None:
        await admin.drain(self._server, queue, delayed)

    async def clean(self, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
        return await admin.clean(self._server, queue, state, older_than, limit)

    async def obliterate(self, queue: str, force: bool) -> None:
        await admin.obliterate(self._server, queue, force)
