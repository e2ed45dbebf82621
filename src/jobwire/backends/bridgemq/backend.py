"""The BridgeMQ protocol behind jobwire's one boundary; the work is done by the modules beside this one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from jobwire.backend import Acted, Added, Backend, Capabilities, Consumer, ConsumerSettings, PreparedJob
from jobwire.backends.bridgemq import admin, producer, reading, registry, schedules
from jobwire.backends.bridgemq.consumer import BridgeConsumer
from jobwire.backends.bridgemq.jobtype import JobType
from jobwire.backends.bridgemq.keys import DEFAULT_NAMESPACE, Keys, has_hash_tag
from jobwire.backends.bridgemq.options import WorkerOptions
from jobwire.backends.bridgemq.rules import CAPABILITIES, check
from jobwire.backends.bridgemq.unroutable import unroutable
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.scripts import Scripts
from jobwire.errors import InvalidOption, NotSupported, StoreRefused
from jobwire.model import Event, Job, Page, Schedule, State, WorkerInfo
from jobwire.options import NewJob, NewSchedule
from jobwire.urls import Address

OLDEST_SERVER = (6, 2)


class BridgeMQ:
    """Implements Backend."""

    def __init__(self, address: Address) -> None:
        namespace = address.options.get("namespace", DEFAULT_NAMESPACE)
        if address.transport == "cluster" and not has_hash_tag(namespace):
            rule = "needs a part in braces on a cluster, such as ?namespace={bridge}, to keep its keys on one server"
            raise InvalidOption("namespace", namespace, rule)
        self._address = address
        self._keys = Keys(namespace)
        self._store = RedisStore(address)
        self._scripts = Scripts(self._store, __package__ or "")

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def open(self) -> None:
        await self._store.open()
        about: dict[str, Any] = await self._store.call("INFO")
        version = str(about.get("redis_version", ""))
        found = re.match(r"(\d+)\.(\d+)", version)
        if found and (int(found[1]), int(found[2])) < OLDEST_SERVER:
            oldest = ".".join(map(str, OLDEST_SERVER))
            raise StoreRefused(f"{self._store.where} is Redis {version}; jobwire needs {oldest} or newer")
        if about.get("cluster_enabled") == 1 and not self._store.cluster:
            raise StoreRefused(
                f"{self._store.where} is part of a cluster; reach it with bridgemq+cluster:// or a RedisCluster client"
            )

    async def close(self) -> None:
        await self._store.close()

    def twin(self) -> Backend:
        return BridgeMQ(self._address)

    def _type(self, queue: str) -> JobType:
        return JobType(queue, self._keys, self._store, self._scripts)

    def check(self, queue: str, job: NewJob) -> None:
        check(queue, job)

    async def register(self, queue: str) -> None:
        """The protocol keeps no record of job types."""

    async def add(self, queue: str, jobs: Sequence[PreparedJob], connection: Any = None) -> Sequence[Added]:
        if connection is not None:
            CAPABILITIES.require("transactional_add", "add inside the caller's transaction")
        return await producer.add(self._type(queue), jobs)

    def check_worker(self, settings: ConsumerSettings) -> None:
        WorkerOptions.read(settings)

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        return BridgeConsumer(self._store, self._scripts, self._keys, settings)

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]:
        return await reading.get(self._type(queue), job_ids)

    async def jobs(
        self, queue: str, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
    ) -> Page:
        return await reading.jobs(self._type(queue), state, limit, cursor, skip=skip, reverse=reverse)

    async def counts(self, queue: str) -> Mapping[State, int]:
        return await reading.counts(self._type(queue))

    async def unroutable(self, queue: str, limit: int) -> Sequence[Job]:
        """Beyond the boundary: jobs that no live worker can take."""
        return await unroutable(self._type(queue), limit)

    async def pause(self, queue: str) -> None:
        await admin.pause(self._type(queue))

    async def resume(self, queue: str) -> None:
        await admin.resume(self._type(queue))

    async def paused(self, queue: str) -> bool:
        return await admin.paused(self._type(queue))

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.retry(self._type(queue), job_ids)

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.promote(self._type(queue), job_ids)

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        raise NotSupported(CAPABILITIES.protocol, "cancelled state", CAPABILITIES.nearest["cancel"])

    async def remove(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.remove(self._type(queue), job_ids)

    async def drain(self, queue: str, delayed: bool) -> None:
        await admin.drain(self._type(queue), delayed)

    async def clean(self, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
        return await admin.clean(self._type(queue), state, older_than, limit)

    async def obliterate(self, queue: str, force: bool) -> None:
        await admin.obliterate(self._type(queue), force)

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted:
        return await admin.update_progress(self._type(queue), job_id, value)

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        return await admin.log(self._type(queue), job_id, line, keep)

    async def logs(self, queue: str, job_id: str) -> Sequence[str]:
        return await reading.logs(self._type(queue), job_id)

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        return await schedules.schedule(self._type(queue), schedule, job)

    async def unschedule(self, queue: str, key: str) -> bool:
        return await schedules.unschedule(self._type(queue), key)

    async def schedules(self, queue: str) -> Sequence[Schedule]:
        return await schedules.schedules(self._type(queue))

    async def cursor(self, queue: str) -> str:
        raise NotSupported(CAPABILITIES.protocol, "event stream", CAPABILITIES.nearest["events"])

    def events(self, queue: str, since: str) -> AsyncIterator[Event]:
        raise NotSupported(CAPABILITIES.protocol, "event stream", CAPABILITIES.nearest["events"])

    async def workers(self, queue: str) -> Sequence[WorkerInfo]:
        return [worker.info for worker in await registry.live_workers(self._type(queue))]
