"""Implements the pipeline's boundary for one BullMQ queue; the work is done by the modules beside this one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from jobwire.backends.bullmq.keys import DEFAULT_PREFIX, Keys
from jobwire.pipeline.stores.boundary import Offset, Purged, Stamp, Wanted
from jobwire.pipeline.stores.bullmq import finished, partitions, purge
from jobwire.pipeline.stores.bullmq.events import EventLog
from jobwire.pipeline.stores.bullmq.jobs import JobsReader
from jobwire.pipeline.stores.bullmq.look import look
from jobwire.pipeline.stores.redisio.connection import RedisConnection, scan
from jobwire.urls import Address

__all__ = ["BullmqStore", "list_queues", "look", "open_store"]


class BullmqStore:
    """Implements QueueStore."""

    def __init__(self, connection: RedisConnection, keys: Keys, name: str) -> None:
        self._connection = connection
        self._keys = keys
        self._name = name
        self._events = EventLog(connection, keys, name)

    def plan_jobs(self, wanted: Wanted, parts: int) -> Sequence[partitions.Part]:
        return partitions.plan(self._connection, self._keys, wanted, parts)

    def read_jobs(self, part: partitions.Part, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        return JobsReader(self._connection, self._keys, self._name, wanted).read(part)

    def first_offset(self) -> Offset:
        return self._events.first()

    def latest_offset(self, start: Offset, max_rows: int | None) -> Offset:
        return self._events.latest(start, max_rows)

    def passed(self, offset: Offset, target: Offset) -> bool:
        return self._events.passed(offset, target)

    def plan_events(self, start: Offset, end: Offset) -> Sequence[Any]:
        return self._events.plan(start, end)

    def read_events(self, part: Any) -> Iterator[pa.RecordBatch]:
        return self._events.read(part)

    def present(self, ids: Sequence[str]) -> Collection[str]:
        return finished.present(self._connection, self._keys, ids)

    def payloads(self, ids: Sequence[str]) -> Mapping[str, str]:
        return finished.payloads(self._connection, self._keys, ids)

    def purge(self, stamps: Sequence[Stamp]) -> Purged:
        return purge.purge(self._connection, self._keys, stamps)

    def put_finished(self, jobs: pa.RecordBatch) -> int:
        return finished.put(self._connection, self._keys, jobs)

    def close(self) -> None:
        self._connection.close()


def open_store(address: Address, queue: str, name: str) -> BullmqStore:
    keys = Keys(address.options.get("prefix", DEFAULT_PREFIX), queue)
    return BullmqStore(RedisConnection(address, keys.base), keys, name)


def list_queues(address: Address) -> Sequence[str]:
    """Returns the queues by the keys of their settings, which every client writes with its first job."""
    prefix = address.options.get("prefix", DEFAULT_PREFIX)
    return sorted({name for name in scan(address, f"{prefix}:", ":meta") if name and ":" not in name})
