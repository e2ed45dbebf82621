"""Implements the pipeline's boundary for one Monque queue."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing

import pyarrow as pa

from jobwire.backends.monque.codec import key_of, text_of
from jobwire.backends.monque.connection.clock import now_ms
from jobwire.backends.monque.payload import from_bson
from jobwire.boundary import Acted
from jobwire.pipeline.stores.boundary import Offset, Purged, Stamp, Wanted
from jobwire.pipeline.stores.monque import events, finished, jobs, partitions, purge
from jobwire.pipeline.stores.monque.changes import ClusterTime
from jobwire.pipeline.stores.monque.events import Events, Part
from jobwire.pipeline.stores.monque.mongo import Collections
from jobwire.pipeline.stores.monque.partitions import Partition
from jobwire.pipeline.stores.monque.remove_waiting import remove_waiting
from jobwire.pipeline.stores.monque.rows import json_text
from jobwire.urls import Address

_SIX_HOURS = 6 * 3_600_000


class MonqueStore:
    """Implements QueueStore. A queue is a name that jobs have: an unknown one is empty. All queues are in one
    collection, so that several are read as easily as one."""

    def __init__(
        self, collections: Collections, queues: Sequence[str], name: str, now: ClusterTime | None = None
    ) -> None:
        self._collections = collections
        self._queues = tuple(queues)
        self._name = name
        self._events = Events(collections, self._queues, name, now)

    @property
    def _queue(self) -> str:
        [queue] = self._queues
        return queue

    def plan_jobs(self, wanted: Wanted, parts: int) -> Sequence[Partition]:
        names = self._wanted(wanted)
        return partitions.plan(self._collections, partitions.condition_of(names, wanted), parts) if names else []

    def read_jobs(self, part: Partition, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        condition = partitions.condition_of(self._wanted(wanted), wanted)
        return jobs.read(self._collections, part, condition, self._name)

    def _wanted(self, wanted: Wanted) -> Sequence[str]:
        """Returns the queues whose jobs may be wanted: the name of a job is that of its queue."""
        return [name for name in self._queues if wanted.names is None or name in wanted.names]

    def first_offset(self) -> Offset:
        return events.FIRST

    def latest_offset(self, start: Offset, max_rows: int | None) -> Offset:
        return self._events.latest(start, max_rows)

    def passed(self, offset: Offset, target: Offset) -> bool:
        return self._events.passed(offset, target)

    def plan_events(self, start: Offset, end: Offset) -> Sequence[Part]:
        return self._events.plan(start, end)

    def read_events(self, part: Part) -> Iterator[pa.RecordBatch]:
        return self._events.read(part)

    def present(self, ids: Sequence[str]) -> Collection[str]:
        keys = {key_of(one): one for one in ids}
        with self._collections.reaching():
            condition = {"_id": {"$in": list(keys)}, "name": self._queue}
            return {keys[found["_id"]] for found in self._collections.jobs.find(condition, {"_id": 1})}

    def payloads(self, ids: Sequence[str]) -> Mapping[str, str]:
        keys = {key_of(one): one for one in ids}
        with self._collections.reaching():
            condition = {"_id": {"$in": list(keys)}, "name": self._queue}
            found = self._collections.jobs.find(condition, {"data": 1})
            return {keys[one["_id"]]: json_text(from_bson(one.get("data"))) for one in found}

    def purge(self, stamps: Sequence[Stamp]) -> Purged:
        return purge.purge(self._collections, self._queue, stamps)

    def remove_waiting(self, ids: Sequence[str]) -> Sequence[Acted]:
        return remove_waiting(self._collections, self._queue, ids)

    def put_finished(self, jobs: pa.RecordBatch) -> int:
        return finished.put_finished(self._collections, self._queue, jobs)

    def close(self) -> None:
        self._collections.close()


class MonqueConnection:
    """Implements StoreConnection. A standalone server has no change stream, and the times of one queue's clients say
    nothing about those of another: there, each queue is read by itself."""

    def __init__(self, address: Address, name: str) -> None:
        self._collections = Collections(address)
        self._name = name
        self.merges = self._collections.streams
        self._now: ClusterTime | None = None

    def queue(self, queues: Sequence[str]) -> MonqueStore:
        return MonqueStore(self._collections, queues, self._name, self._now)

    def expect(self, queues: Sequence[str]) -> None:
        """Takes the time once for all of these queues: those that have different offsets now get the same one, and
        are read together from then on."""
        if self.merges:
            with self._collections.reaching():
                self._now = self._collections.majority_time()

    def sizes(self, queues: Sequence[str], wanted: Wanted) -> Mapping[str, int]:
        stages = [
            {"$match": partitions.condition_of(queues, wanted)},
            {"$group": {"_id": "$name", "jobs": {"$sum": 1}}},
        ]
        with self._collections.reaching():
            return {one["_id"]: one["jobs"] for one in self._collections.jobs.aggregate(stages)}

    def close(self) -> None:
        self._collections.close()


def connect(address: Address, name: str) -> MonqueConnection:
    return MonqueConnection(address, name)


def look(address: Address, queues: Sequence[str]) -> list[object]:
    """Returns figures of each queue and state that differ after every change of a job: each gives it a new time.

    On a replica set they differ four times a day in any case: the server drops old changes, and an offset must not lie
    before them.
    """
    with closing(Collections(address)) as collections, collections.reaching():
        changed = {"$convert": {"input": "$updatedAt", "to": "long", "onError": 0, "onNull": 0}}
        group = {
            "_id": {"n": "$name", "s": "$status"},
            "jobs": {"$sum": 1},
            "at": {"$sum": changed},
            "last": {"$max": changed},
        }
        found = collections.jobs.aggregate([{"$match": {"name": {"$in": list(queues)}}}, {"$group": group}])
        seen = sorted(map(repr, found))
        return [*seen, now_ms() // _SIX_HOURS] if collections.streams else [*seen]


def list_queues(address: Address) -> Sequence[str]:
    collections = Collections(address)
    try:
        with collections.reaching():
            names = collections.jobs.distinct("name")
        return sorted(filter(None, map(text_of, names)))
    finally:
        collections.close()
