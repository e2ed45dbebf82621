"""Implements the pipeline's boundary for one BullMQ queue; the work is done by the modules beside this one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from jobwire.backends.bullmq.keys import DEFAULT_PREFIX, Keys
from jobwire.boundary import Acted
from jobwire.pipeline.stores.boundary import Offset, Purged, Stamp, Wanted
from jobwire.pipeline.stores.bullmq import finished, partitions, purge
from jobwire.pipeline.stores.bullmq.events import EventLog
from jobwire.pipeline.stores.bullmq.jobs import JobsReader
from jobwire.pipeline.stores.bullmq.look import look
from jobwire.pipeline.stores.bullmq.remove_waiting import remove_waiting
from jobwire.pipeline.stores.redisio.connection import RedisConnection, scan
from jobwire.urls import Address

__all__ = ["BullmqConnection", "BullmqStore", "connect", "list_queues", "look"]

_AT_A_TIME = 500


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

    def remove_waiting(self, ids: Sequence[str]) -> Sequence[Acted]:
        return remove_waiting(self._connection, self._keys, ids)

    def put_finished(self, jobs: pa.RecordBatch) -> int:
        return finished.put(self._connection, self._keys, jobs)

    def close(self) -> None:
        self._connection.close()


class BullmqConnection:
    """Implements StoreConnection. In a cluster, each queue may be on another server."""

    merges = False

    def __init__(self, address: Address, name: str) -> None:
        self._address = address
        self._prefix = address.options.get("prefix", DEFAULT_PREFIX)
        self._name = name
        self._connection: RedisConnection | None = None

    def queue(self, queues: Sequence[str]) -> BullmqStore:
        [queue] = queues
        keys = Keys(self._prefix, queue)
        return BullmqStore(self._of(keys), keys, self._name)

    def expect(self, queues: Sequence[str]) -> None:
        """Does nothing: a queue is known by its name."""

    def sizes(self, queues: Sequence[str], wanted: Wanted) -> Mapping[str, int]:
        found: dict[str, int] = {}
        servers: dict[RedisConnection, list[Keys]] = {}
        for queue in queues:
            keys = Keys(self._prefix, queue)
            servers.setdefault(self._of(keys), []).append(keys)
        for connection, of_server in servers.items():
            for start in range(0, len(of_server), _AT_A_TIME):
                found |= partitions.sizes(connection, of_server[start : start + _AT_A_TIME], wanted)
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _of(self, keys: Keys) -> RedisConnection:
        if self._connection is None:
            self._connection = RedisConnection(self._address, keys.base)
        return self._connection.for_key(self._address, keys.base)


def connect(address: Address, name: str) -> BullmqConnection:
    return BullmqConnection(address, name)


def list_queues(address: Address) -> Sequence[str]:
    """Returns the queues by the keys of their settings, which every client writes with its first job."""
    prefix = address.options.get("prefix", DEFAULT_PREFIX)
    return sorted({name for name in scan(address, f"{prefix}:", ":meta") if name and ":" not in name})
