"""Assembles the parts of the Monque backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobwire.backends.monque.address import collection_address
from jobwire.backends.monque.connection.clock import ms_of
from jobwire.backends.monque.connection.side_data import SideData
from jobwire.backends.monque.connection.store import Store
from jobwire.backends.monque.operate import admin, read
from jobwire.backends.monque.operate.cancel import MonqueCancels
from jobwire.backends.monque.operate.diagnose import MonqueDiagnosis
from jobwire.backends.monque.operate.events import MonqueEvents
from jobwire.backends.monque.operate.pause import MonquePause
from jobwire.backends.monque.operate.queue_list import MonqueQueueList
from jobwire.backends.monque.produce.add import add, add_in, documents, given_ids
from jobwire.backends.monque.produce.schedules import MonqueSchedules
from jobwire.backends.monque.rules import CAPABILITIES, check, check_name, check_worker
from jobwire.backends.monque.work.consumer import MonqueConsumer
from jobwire.backends.monque.work.identity import Identities
from jobwire.backends.monque.work.progress_and_logs import MonqueLogs, MonqueProgress
from jobwire.backends.monque.work.wakeup import Wakeup
from jobwire.backends.monque.worker_options import WorkerOptions
from jobwire.boundary import Acted, Added, Backend, Capabilities, Consumer, ConsumerSettings, Feature, PreparedJob
from jobwire.model import Job, Page, State
from jobwire.options import NewJob
from jobwire.urls import Address


class Monque:
    """Implements Backend."""

    flows = None
    dependencies = None
    edits = None
    bulk = None
    event_control = None
    limits = None
    unique_owners = None
    key_limits = None
    traces = None
    routing = None
    transactions = None
    workers = None

    def __init__(self, address: Address, *, make_indexes: bool = True, side_is_known: bool = False) -> None:
        self._address = address
        self.store = Store(collection_address(address), make_indexes=make_indexes, side_is_known=side_is_known)
        self.side_data = SideData(self.store)
        self._wakeup = Wakeup(self.store)
        self._identities = Identities()
        self._streaming = replace(CAPABILITIES, default_attempts=self.store.address.max_retries)
        self._standalone = replace(self._streaming, features=CAPABILITIES.features - {Feature.EVENTS})
        self.cancels = MonqueCancels(self.store)
        self.pause = MonquePause(self.side_data)
        self.progress = MonqueProgress(self.store)
        self.logs = MonqueLogs(self.store)
        self.schedules = MonqueSchedules(self.store, self.side_data, self._wakeup)
        self.queue_list = MonqueQueueList(self.store)
        self.diagnosis = MonqueDiagnosis(self.store)
        self._events = MonqueEvents(self.store)

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities. They are complete once opened: a standalone server has no event stream."""
        return self._streaming if self.store.streams else self._standalone

    @property
    def events(self) -> MonqueEvents | None:
        """The events, or None on a standalone server, which has no event stream. Known once opened."""
        return self._events if self.store.streams else None

    async def open(self, *, look_only: bool = False) -> None:
        await self.store.open(look_only=look_only)

    async def close(self) -> None:
        await self._wakeup.close()
        await self.store.close()

    def twin(self) -> Backend:
        return Monque(self._address, make_indexes=False, side_is_known=self.store.side_is_known)

    def check(self, queue: str, job: NewJob, data: bytes | None = None) -> None:
        check(queue, job)

    async def register(self, queue: str) -> None:
        """Checks the name. Monque does not store queues."""
        check_name(queue)

    async def add(self, queue: str, jobs: Sequence[PreparedJob], transaction: Any = None) -> Sequence[Added]:
        await self.store.look_at_clock()
        made = documents(queue, jobs, self.store.clock.now_ms())
        if transaction is not None:
            return await add_in(self.store, made, transaction, given_ids(jobs))
        added = await add(self.store, made, given_ids(jobs))
        if made:
            self._wakeup.wake(queue, min(ms_of(one["nextRunAt"]) or 0 for one in made), len(made))
        return added

    def check_worker(self, settings: ConsumerSettings) -> None:
        check_worker(settings)
        WorkerOptions.of(self.store.address, settings.native)

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        self.check_worker(settings)
        return MonqueConsumer(
            self.store, self.side_data, self._wakeup, self._identities.of(settings.worker_id), settings
        )

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]:
        return await read.get(self.store, self.side_data, queue, job_ids)

    async def jobs(
        self, queue: str, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
    ) -> Page:
        return await read.jobs(
            self.store, self.side_data, queue, state, limit=limit, cursor=cursor, skip=skip, reverse=reverse
        )

    async def counts(self, queue: str) -> Mapping[State, int]:
        return await read.counts(self.store, queue)

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        acted = await admin.retry(self.store, queue, job_ids)
        self._wakeup.wake(queue, self.store.clock.now_ms(), len(job_ids))
        return acted

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        acted = await admin.promote(self.store, queue, job_ids)
        self._wakeup.wake(queue, self.store.clock.now_ms(), len(job_ids))
        return acted

    async def remove(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.remove(self.store, self.side_data, queue, job_ids)

    async def drain(self, queue: str, delayed: bool) -> None:
        await admin.drain(self.store, self.side_data, queue, delayed)

    async def clean(self, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
        return await admin.clean(self.store, self.side_data, queue, state, older_than=older_than, limit=limit)

    async def obliterate(self, queue: str, force: bool) -> None:
        await admin.obliterate(self.store, self.side_data, queue, force)
