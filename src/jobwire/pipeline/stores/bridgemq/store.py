"""Implements the pipeline's boundary for one BridgeMQ job type; the work is done by the modules beside this one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing

import pyarrow as pa

from jobwire.backends.bridgemq.keys import DEFAULT_NAMESPACE, Keys, check_name
from jobwire.pipeline.stores.boundary import Offset, Purged, Stamp, Wanted
from jobwire.pipeline.stores.bridgemq import finished, jobs, partitions, purge
from jobwire.pipeline.stores.bridgemq.events import EventLog, Window
from jobwire.pipeline.stores.bridgemq.index import Index
from jobwire.pipeline.stores.redisio.connection import RedisConnection
from jobwire.urls import Address


class BridgemqStore:
    """Implements QueueStore."""

    def __init__(self, index: Index, name: str) -> None:
        self._index = index
        self._name = name
        self._events = EventLog(index, name)

    def plan_jobs(self, wanted: Wanted, parts: int) -> Sequence[partitions.Part]:
        return partitions.plan(self._index, wanted, parts, partitions.finished_from(wanted))

    def read_jobs(self, part: partitions.Part, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        return jobs.read(self._index, self._name, part, wanted)

    def first_offset(self) -> Offset:
        return self._events.first()

    def latest_offset(self, start: Offset, max_rows: int | None) -> Offset:
        """Returns the newest offset whatever `max_rows` is: see events.py."""
        return self._events.latest(start)

    def passed(self, offset: Offset, target: Offset) -> bool:
        return self._events.passed(offset, target)

    def plan_events(self, start: Offset, end: Offset) -> Sequence[Window]:
        return self._events.plan(start, end)

    def read_events(self, part: Window) -> Iterator[pa.RecordBatch]:
        return self._events.read(part)

    def present(self, ids: Sequence[str]) -> Collection[str]:
        return finished.present(self._index, ids)

    def payloads(self, ids: Sequence[str]) -> Mapping[str, str]:
        return finished.payloads(self._index, ids)

    def purge(self, stamps: Sequence[Stamp]) -> Purged:
        return purge.purge(self._index, stamps)

    def put_finished(self, jobs: pa.RecordBatch) -> int:
        return finished.put(self._index, jobs)

    def close(self) -> None:
        self._index.connection.close()


def open_store(address: Address, queue: str, name: str) -> BridgemqStore:
    check_name("queue", queue)
    keys = Keys(address.options.get("namespace", DEFAULT_NAMESPACE))
    return BridgemqStore(Index(RedisConnection(address, keys.base), keys, queue), name)


def look(address: Address, queues: Sequence[str]) -> list[str]:
    """Returns what the log of events compares, for each job type."""
    keys = Keys(address.options.get("namespace", DEFAULT_NAMESPACE))
    with closing(RedisConnection(address, keys.base)) as connection:
        return [EventLog(Index(connection, keys, queue), "").look() for queue in queues]


def list_queues(address: Address) -> Sequence[str]:
    """Returns the job types of the namespace, including those that only peers have used."""
    keys = Keys(address.options.get("namespace", DEFAULT_NAMESPACE))
    connection = RedisConnection(address, keys.base)
    try:
        return Index(connection, keys, "").types()
    finally:
        connection.close()
