"""The memory store behind jobwire's boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobwire.backends.flow_dependencies import FlowDependencies
from jobwire.backends.memory.connection import Access
from jobwire.backends.memory.operate import admin, read
from jobwire.backends.memory.operate.bulk import MemoryBulk
from jobwire.backends.memory.operate.edits import MemoryEdits
from jobwire.backends.memory.operate.events import MemoryEventControl, MemoryEvents
from jobwire.backends.memory.operate.limits import MemoryLimits
from jobwire.backends.memory.operate.pause_and_cancel import MemoryCancels, MemoryPause
from jobwire.backends.memory.operate.queue_list import MemoryQueueList
from jobwire.backends.memory.operate.unique_owners import MemoryUniqueOwners
from jobwire.backends.memory.operate.workers import MemoryWorkers
from jobwire.backends.memory.produce.add import add
from jobwire.backends.memory.produce.flows import MemoryFlows
from jobwire.backends.memory.produce.schedules import MemorySchedules
from jobwire.backends.memory.rules import OWN_RULES, imitated
from jobwire.backends.memory.store.store import Store
from jobwire.backends.memory.work.consumer import MemoryConsumer
from jobwire.backends.memory.work.progress_and_logs import MemoryLogs, MemoryProgress
from jobwire.backends.rules import rules_of
from jobwire.boundary import Acted, Added, Backend, Capabilities, Consumer, ConsumerSettings, Feature, PreparedJob
from jobwire.errors import InvalidOption
from jobwire.model import Job, Page, State
from jobwire.options import NewJob


class MemoryBackend:
    """A store of this process, shared by all backends of its name. `store` is a private one instead. `like` is a
    protocol to imitate, with the features of that protocol only."""

    diagnosis = None
    key_limits = None
    traces = None
    routing = None
    transactions = None

    def __init__(self, name: str = "", store: Store | None = None, *, like: str | None = None) -> None:
        self._name = name
        self._like = like
        self._private = store
        self._rules = OWN_RULES if like is None else imitated(rules_of(like))
        self._access = access = Access(name if like is None else f"{name}?like={like}", store, self._rules.rank)
        has = self._rules.capabilities.has
        flows = MemoryFlows(access)
        self.flows = flows if has(Feature.FLOWS) else None
        self.dependencies = FlowDependencies(flows) if has(Feature.DEPENDENCIES) else None
        self.edits = MemoryEdits(access) if has(Feature.EDITS) else None
        self.bulk = MemoryBulk(access) if has(Feature.BULK) else None
        self.cancels = MemoryCancels(access) if has(Feature.CANCEL) else None
        self.pause = MemoryPause(access) if has(Feature.PAUSE) else None
        self.progress = MemoryProgress(access) if has(Feature.PROGRESS) else None
        self.logs = MemoryLogs(access) if has(Feature.LOGS) else None
        self.schedules = MemorySchedules(access) if has(Feature.SCHEDULES) else None
        self.events = MemoryEvents(access) if has(Feature.EVENTS) else None
        self.event_control = MemoryEventControl(access) if has(Feature.EVENT_CONTROL) else None
        self.limits = MemoryLimits(access) if has(Feature.LIMITS) else None
        self.unique_owners = MemoryUniqueOwners(access) if has(Feature.UNIQUE_OWNERS) else None
        self.workers = MemoryWorkers(access) if has(Feature.WORKERS) else None
        self.queue_list = MemoryQueueList(access, has_pause=has(Feature.PAUSE)) if has(Feature.QUEUES) else None

    @property
    def capabilities(self) -> Capabilities:
        return self._rules.capabilities

    async def open(self, *, look_only: bool = False) -> None:
        self._access.open()

    async def close(self) -> None:
        self._access.close()

    def twin(self) -> Backend:
        return MemoryBackend(self._name, self._private, like=self._like)

    def check(self, queue: str, job: NewJob, data: bytes | None = None) -> None:
        self._rules.check(queue, job)

    async def register(self, queue: str) -> None:
        """Does nothing: the store has no peers."""

    async def add(self, queue: str, jobs: Sequence[PreparedJob], transaction: Any = None) -> Sequence[Added]:
        for job in jobs:
            self._rules.check_encoded(job)
        with self._access.locked(queue) as (state, now):
            return [add(state, job, now) for job in jobs]

    def check_worker(self, settings: ConsumerSettings) -> None:
        self._rules.check_worker(settings)
        if settings.native is not None:
            raise InvalidOption("native", settings.native, "can't be given: the memory store has no options of its own")

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        self.check_worker(settings)
        return MemoryConsumer(self._access.store(), settings)

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]:
        with self._access.locked(queue) as (state, now):
            state.make_due_ready(now)
            records = [state.jobs.get(job_id) for job_id in job_ids]
            return [record.snapshot(queue) if record is not None else None for record in records]

    async def jobs(
        self, queue: str, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
    ) -> Page:
        with self._access.locked(queue) as (held, now):
            held.make_due_ready(now)
            return read.page(held, state, limit, cursor, skip=skip, reverse=reverse)

    async def counts(self, queue: str) -> Mapping[State, int]:
        with self._access.locked(queue) as (state, now):
            state.make_due_ready(now)
            return read.counts(state)

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._access.each(queue, job_ids, admin.retry)

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._access.each(queue, job_ids, admin.promote)

    async def remove(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._access.each(queue, job_ids, admin.remove)

    async def drain(self, queue: str, delayed: bool) -> None:
        with self._access.locked(queue) as (state, now):
            admin.drain(state, delayed, now)

    async def clean(self, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
        with self._access.locked(queue) as (held, now):
            return admin.clean(held, state, older_than, limit, now)

    async def obliterate(self, queue: str, force: bool) -> None:
        with self._access.locked(queue) as (state, now):
            admin.obliterate(state, force, now)
