"""The BridgeMQ protocol behind the boundary: its parts, and the methods that every backend has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobwire.backends.bridgemq.connection import side_version
from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.bridgemq.native.unroutable import BridgeRouting
from jobwire.backends.bridgemq.operate import admin, read
from jobwire.backends.bridgemq.operate.diagnose import BridgeDiagnosis
from jobwire.backends.bridgemq.operate.pause import BridgePause
from jobwire.backends.bridgemq.operate.queue_list import BridgeQueueList
from jobwire.backends.bridgemq.operate.workers import BridgeWorkers
from jobwire.backends.bridgemq.produce.add import add
from jobwire.backends.bridgemq.produce.schedules import BridgeSchedules
from jobwire.backends.bridgemq.rules import CAPABILITIES, check
from jobwire.backends.bridgemq.work.consumer import BridgeConsumer
from jobwire.backends.bridgemq.work.progress_and_logs import BridgeLogs, BridgeProgress
from jobwire.backends.bridgemq.worker_options import WorkerOptions
from jobwire.backends.redisio.server_check import check_server
from jobwire.backends.side_version import bring_up_to_date
from jobwire.boundary import Acted, Added, Backend, Capabilities, Consumer, ConsumerSettings, Feature, PreparedJob
from jobwire.model import Job, Page, State
from jobwire.options import NewJob
from jobwire.urls import Address


class BridgeMQ:
    """Implements Backend."""

    flows = None
    dependencies = None
    edits = None
    bulk = None
    cancels = None
    events = None
    event_control = None
    limits = None
    unique_owners = None
    key_limits = None
    traces = None
    transactions = None

    def __init__(self, address: Address, *, side_is_known: bool = False) -> None:
        self._address = address
        self._side_is_known = side_is_known
        """True if the version of the side data has been checked. A twin does not check again: it extends leases of jobs
        that run already."""
        self._namespace = namespace = Namespace(address)
        self.pause = BridgePause(namespace)
        self.progress = BridgeProgress(namespace)
        self.logs = BridgeLogs(namespace)
        self.schedules = BridgeSchedules(namespace)
        self.routing = BridgeRouting(namespace)
        self.workers = BridgeWorkers(namespace)
        self.queue_list = BridgeQueueList(namespace)
        self.diagnosis = BridgeDiagnosis(namespace)

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def open(self, *, look_only: bool = False) -> None:
        await self._namespace.store.open()
        await check_server(self._namespace.store, "bridgemq")
        if not self._side_is_known and not look_only:
            try:
                await bring_up_to_date(side_version.BridgeSideData(self._namespace), side_version.STEPS)
            except BaseException:
                await self.close()
                raise
            self._side_is_known = True

    async def close(self) -> None:
        await self._namespace.store.close()

    def twin(self) -> Backend:
        return BridgeMQ(self._address, side_is_known=self._side_is_known)

    def check(self, queue: str, job: NewJob, data: bytes | None = None) -> None:
        check(queue, job)

    async def register(self, queue: str) -> None:
        """Does nothing: the protocol keeps no record of job types."""

    async def add(self, queue: str, jobs: Sequence[PreparedJob], transaction: Any = None) -> Sequence[Added]:
        if transaction is not None:
            CAPABILITIES.require(Feature.TRANSACTIONAL_ADD)
        return await add(self._namespace.type(queue), jobs)

    def check_worker(self, settings: ConsumerSettings) -> None:
        WorkerOptions.read(settings)

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        return BridgeConsumer(self._namespace.store, self._namespace.scripts, self._namespace.keys, settings)

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]:
        return await read.get(self._namespace.type(queue), job_ids)

    async def jobs(
        self, queue: str, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
    ) -> Page:
        return await read.jobs(self._namespace.type(queue), state, limit, cursor, skip=skip, reverse=reverse)

    async def counts(self, queue: str) -> Mapping[State, int]:
        return await read.counts(self._namespace.type(queue))

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.retry(self._namespace.type(queue), job_ids)

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.promote(self._namespace.type(queue), job_ids)

    async def remove(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.remove(self._namespace.type(queue), job_ids)

    async def drain(self, queue: str, delayed: bool) -> None:
        await admin.drain(self._namespace.type(queue), delayed)

    async def clean(self, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
        return await admin.clean(self._namespace.type(queue), state, older_than, limit)

    async def obliterate(self, queue: str, force: bool) -> None:
        await admin.obliterate(self._namespace.type(queue), force)
