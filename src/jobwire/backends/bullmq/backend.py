"""The BullMQ protocol behind jobwire's one boundary; the work is done by the modules beside this one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from jobwire._version import __version__
from jobwire.backend import Acted, Added, Backend, Capabilities, Consumer, ConsumerSettings, PreparedJob
from jobwire.backends.bullmq import admin, control, events, flows, producer, reading, schedules
from jobwire.backends.bullmq.consumer import BullConsumer
from jobwire.backends.bullmq.keys import DEFAULT_PREFIX, Keys, hash_tag
from jobwire.backends.bullmq.rules import CAPABILITIES, check
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.scripts import Scripts
from jobwire.errors import InvalidOption, NotSupported, StoreRefused
from jobwire.facets import FlowNode
from jobwire.model import Children, Event, Job, JobKey, Limits, Page, Schedule, State, WorkerInfo
from jobwire.native import BullMQWorker, of_kind
from jobwire.options import NewJob, NewSchedule
from jobwire.urls import Address

OLDEST_SERVER = (6, 2)


class BullMQ:
    """Implements Backend."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._prefix = address.options.get("prefix", DEFAULT_PREFIX)
        self._store = RedisStore(address)
        self._scripts = Scripts(self._store, __package__ or "")
        self._known: dict[str, Keys] = {}

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def open(self) -> None:
        await self._store.open()
        await self._store.call("PING")
        try:
            about: dict[str, Any] = await self._store.call("INFO")
        except StoreRefused:
            return  # an account may lack the right to ask, and still do everything else
        version = str(about.get("redis_version", ""))
        found = re.match(r"(\d+)\.(\d+)", version)
        if found and (int(found[1]), int(found[2])) < OLDEST_SERVER:
            oldest = ".".join(map(str, OLDEST_SERVER))
            raise StoreRefused(f"{self._store.where} is Redis {version}; jobwire needs {oldest} or newer")
        if about.get("cluster_enabled") == 1 and not self._store.cluster:
            raise StoreRefused(
                f"{self._store.where} is part of a cluster; reach it with bullmq+cluster:// or a RedisCluster client"
            )

    async def close(self) -> None:
        await self._store.close()

    def twin(self) -> Backend:
        return BullMQ(self._address)

    def _keys(self, queue: str) -> Keys:
        keys = self._known.get(queue)
        if keys is None:
            keys = Keys(self._prefix, queue)
            if self._store.cluster and hash_tag(keys.base) is None:
                rule = (
                    "needs a part in braces on a cluster, as has a prefix: ?prefix={bull} keeps a queue on one server"
                )
                raise InvalidOption("queue", queue, rule)
            self._known[queue] = keys
        return keys

    def check(self, queue: str, job: NewJob) -> bytes:
        self._keys(queue)
        options = check(self._prefix, job)
        if job.parent is not None:
            self.check_flow([queue, job.parent.queue])
        return options

    async def register(self, queue: str) -> None:
        """What BullMQ's Queue writes when it is made. A limit of events that someone has set stays."""
        meta = self._keys(queue).meta
        await self._store.calls(
            [
                ("HSETNX", meta, "opts.maxLenEvents", control.DEFAULT_EVENTS),
                ("HSET", meta, "version", f"jobwire:{__version__}"),
            ]
        )

    async def add(self, queue: str, jobs: Sequence[PreparedJob], connection: Any = None) -> Sequence[Added]:
        if connection is not None:
            CAPABILITIES.require("transactional_add", "add inside the caller's transaction")
        return await producer.add(self._store, self._scripts, self._keys(queue), jobs)

    def check_worker(self, settings: ConsumerSettings) -> None:
        self._keys(settings.queue)
        of_kind(BullMQWorker, settings.native, "BullMQ")

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        return BullConsumer(self._store, self._scripts, self._keys(settings.queue), settings)

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]:
        return await reading.get(self._scripts, self._keys(queue), job_ids)

    async def jobs(
        self, queue: str, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
    ) -> Page:
        return await reading.jobs(self._scripts, self._keys(queue), state, limit, cursor, skip=skip, reverse=reverse)

    async def counts(self, queue: str) -> Mapping[State, int]:
        return await reading.counts(self._scripts, self._keys(queue))

    async def pause(self, queue: str) -> None:
        await admin.pause(self._scripts, self._keys(queue))

    async def resume(self, queue: str) -> None:
        await admin.resume(self._scripts, self._keys(queue))

    async def paused(self, queue: str) -> bool:
        return await admin.paused(self._store, self._keys(queue))

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.retry(self._scripts, self._keys(queue), job_ids)

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.promote(self._scripts, self._keys(queue), job_ids)

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        raise NotSupported(CAPABILITIES.protocol, "cancelled state", CAPABILITIES.nearest["cancel"])

    async def remove(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.remove(self._scripts, self._keys(queue), job_ids, children=True)

    async def drain(self, queue: str, delayed: bool) -> None:
        await admin.drain(self._store, self._scripts, self._keys(queue), delayed)

    async def clean(self, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
        return await admin.clean(self._scripts, self._keys(queue), state, older_than, limit)

    async def obliterate(self, queue: str, force: bool) -> None:
        await admin.obliterate(self._store, self._scripts, self._keys(queue), force)

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted:
        return await admin.update_progress(self._scripts, self._keys(queue), job_id, value)

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        return await admin.log(self._scripts, self._keys(queue), job_id, line, keep)

    async def logs(self, queue: str, job_id: str) -> Sequence[str]:
        return await reading.logs(self._store, self._keys(queue), job_id)

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        return await schedules.schedule(self._scripts, self._keys(queue), schedule, job)

    async def unschedule(self, queue: str, key: str) -> bool:
        return await schedules.unschedule(self._scripts, self._keys(queue), key)

    async def schedules(self, queue: str) -> Sequence[Schedule]:
        return await schedules.schedules(self._scripts, self._keys(queue))

    async def cursor(self, queue: str) -> str:
        return await events.cursor(self._store, self._keys(queue))

    def events(self, queue: str, since: str) -> AsyncIterator[Event]:
        return events.events(self._store, self._keys(queue), since)

    async def workers(self, queue: str) -> Sequence[WorkerInfo]:
        return await reading.workers(self._store, self._keys(queue))

    # --- flows ------------------------------------------------------------------------------------------------------

    def check_flow(self, queues: Sequence[str]) -> None:
        if not self._store.cluster:
            return
        tag = hash_tag(self._keys(queues[0]).base)
        for queue in queues:
            if hash_tag(self._keys(queue).base) != tag:
                rule = "must have the same part in braces on a cluster as the queues of its flow"
                raise InvalidOption("queue", queue, rule)

    async def add_flow(self, roots: Sequence[FlowNode]) -> Sequence[Added]:
        return await flows.add_flow(self._scripts, self._keys, roots)

    async def children(self, queue: str, job_id: str) -> Children:
        return await flows.children(self._scripts, self._keys(queue), job_id)

    async def children_of(self, keys: Sequence[JobKey], limit: int) -> Sequence[Sequence[JobKey]]:
        return await flows.children_of(self._scripts, [(self._keys(key.queue), key.id) for key in keys], limit)

    async def remove_alone(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.remove(self._scripts, self._keys(queue), job_ids, children=False)

    # --- changes ----------------------------------------------------------------------------------------------------

    async def retry_anew(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await admin.retry_anew(self._scripts, self._keys(queue), job_ids)

    async def update_data(self, queue: str, job_id: str, data: bytes) -> Acted:
        return await control.update_data(self._scripts, self._keys(queue), job_id, data)

    async def change_priority(self, queue: str, job_id: str, priority: int, front: bool) -> Acted:
        return await control.change_priority(self._scripts, self._keys(queue), job_id, priority, front)

    async def change_delay(self, queue: str, job_id: str, delay: float) -> Acted:
        return await control.change_delay(self._scripts, self._keys(queue), job_id, delay)

    async def clear_logs(self, queue: str, job_id: str, keep: int) -> Acted:
        return await control.clear_logs(self._store, self._keys(queue), job_id, keep)

    async def now(self) -> float:
        return await self._store.clock.now_ms() / 1000

    async def counts_by_priority(self, queue: str, priorities: Sequence[int]) -> Mapping[int, int]:
        return await reading.counts_by_priority(self._store, self._keys(queue), priorities)

    async def retry_all(self, queue: str, state: State, before: float, limit: int) -> int:
        return await control.retry_all(self._scripts, self._keys(queue), state, before, limit)

    async def promote_all(self, queue: str, limit: int) -> int:
        return await control.promote_all(self._scripts, self._keys(queue), limit)

    # --- limits, events, unique keys --------------------------------------------------------------------------------

    async def limits(self, queue: str) -> Limits:
        return await control.limits(self._store, self._keys(queue))

    async def limit_rate(self, queue: str, rate: tuple[int, float] | None) -> None:
        await control.limit_rate(self._store, self._keys(queue), rate)

    async def limit_concurrency(self, queue: str, concurrency: int | None) -> None:
        await control.limit_concurrency(self._store, self._keys(queue), concurrency)

    async def throttle(self, queue: str, delay: float) -> None:
        await control.throttle(self._store, self._keys(queue), delay)

    async def publish(self, queue: str, event: str, fields: Mapping[str, str]) -> str:
        return await control.publish(self._store, self._keys(queue), event, fields)

    async def trim_events(self, queue: str, keep: int) -> int:
        return await control.trim_events(self._store, self._keys(queue), keep)

    async def limit_events(self, queue: str, keep: int) -> None:
        await control.limit_events(self._store, self._keys(queue), keep)

    async def unique_owner(self, queue: str, key: str) -> str | None:
        return await control.unique_owner(self._store, self._keys(queue), key)

    async def release_unique(self, queue: str, key: str) -> bool:
        return await control.release_unique(self._store, self._keys(queue), key)
