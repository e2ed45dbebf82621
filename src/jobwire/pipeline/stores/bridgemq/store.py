"""Implements the pipeline's boundary for one BridgeMQ job type; the work is done by the modules beside this one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing

import pyarrow as pa

from jobwire.backends.bridgemq.keys import DEFAULT_NAMESPACE, Keys, check_name
from jobwire.boundary import Acted
from jobwire.pipeline.stores.boundary import Offset, Purged, Stamp, Wanted
from jobwire.pipeline.stores.bridgemq import finished, jobs, partitions, purge
from jobwire.pipeline.stores.bridgemq.events import EventLog, Window
from jobwire.pipeline.stores.bridgemq.index import Index, Reindexed
from jobwire.pipeline.stores.bridgemq.remove_waiting import remove_waiting
from jobwire.pipeline.stores.redisio.connection import RedisConnection
from jobwire.urls import Address

_AT_A_TIME = 500


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

    def remove_waiting(self, ids: Sequence[str]) -> Sequence[Acted]:
        return remove_waiting(self._index, ids)

    def put_finished(self, jobs: pa.RecordBatch) -> int:
        return finished.put(self._index, jobs)

    def close(self) -> None:
        self._index.connection.close()


class BridgemqConnection:
    """Implements StoreConnection. All types of a namespace are on one server."""

    merges = False

    def __init__(self, address: Address, name: str) -> None:
        self._keys = Keys(address.options.get("namespace", DEFAULT_NAMESPACE))
        self._connection = RedisConnection(address, self._keys.base)
        self._name = name
        self._indexed = Reindexed()

    def queue(self, queues: Sequence[str]) -> BridgemqStore:
        [queue] = queues
        check_name("queue", queue)
        return BridgemqStore(Index(self._connection, self._keys, queue, self._indexed), self._name)

    def expect(self, queues: Sequence[str]) -> None:
        """Updates the index, which is one for all types, and not again for each of these."""
        Index(self._connection, self._keys, "").reindex()
        self._indexed.lasts = True

    def sizes(self, queues: Sequence[str], wanted: Wanted) -> Mapping[str, int]:
        self.expect(queues)
        found: dict[str, int] = {}
        for start in range(0, len(queues), _AT_A_TIME):
            of_step = [Index(self._connection, self._keys, queue) for queue in queues[start : start + _AT_A_TIME]]
            found |= partitions.sizes(of_step, wanted)
        return found

    def close(self) -> None:
        self._connection.close()


def connect(address: Address, name: str) -> BridgemqConnection:
    return BridgemqConnection(address, name)


def look(address: Address, queues: Sequence[str]) -> list[str]:
    """Returns what the log of events compares, for each job type."""
    keys = Keys(address.options.get("namespace", DEFAULT_NAMESPACE))
    with closing(RedisConnection(address, keys.base)) as connection:
        Index(connection, keys, "").reindex()
        indexed = Reindexed(lasts=True)
        return [EventLog(Index(connection, keys, queue, indexed), "").look() for queue in queues]


def list_queues(address: Address) -> Sequence[str]:
    """Returns the job types of the namespace, including those that only peers have used."""
    keys = Keys(address.options.get("namespace", DEFAULT_NAMESPACE))
    connection = RedisConnection(address, keys.base)
    try:
        return Index(connection, keys, "").types()
    finally:
        connection.close()
