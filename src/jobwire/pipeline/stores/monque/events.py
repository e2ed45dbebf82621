"""Reads a queue's events, from a change stream or from the documents.

A replica set has a change stream, and an offset is a time of the set (`t` seconds, `i` within the second). The first
batch reads the jobs that are there, from a time taken before they are read; later batches read changes. Changes that
the server has dropped become a gap, after which the jobs that are there are read again. A change has no queue, which is
looked up in the job, or in the change that added the job if it is gone. If that is not there any more either, there is
a gap too.

A standalone server has no change stream, so jobs are read whose `updatedAt` is new, with an overlap: the times are
those of the clients' clocks. What happened to a job between two reads is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from jobwire.backends.monque.connection.clock import moment, ms_of
from jobwire.pipeline.lake.rows import EventRow
from jobwire.pipeline.lake.schemas import EVENTS
from jobwire.pipeline.stores.batches import Rows
from jobwire.pipeline.stores.boundary import Offset
from jobwire.pipeline.stores.monque import changes, document_events, jobs, partitions
from jobwire.pipeline.stores.monque.changes import ClusterTime, HistoryLost
from jobwire.pipeline.stores.monque.document_events import JobEvent
from jobwire.pipeline.stores.monque.mongo import Collections, Document
from jobwire.pipeline.stores.monque.partitions import Partition

FIRST: Offset = {"t": 0, "i": 0, "at": 0}
OVERLAP_MS = 60_000
"""The difference between clients' clocks that is allowed for on a standalone server. An offset may have its own, as
`overlap`."""
_LEAST_PROGRESS = 600
"""Seconds after which an offset advances without events, before the server drops the changes behind it."""
_SCAN_PARTS = 8


@dataclass(frozen=True)
class Stretch:
    """Changes after `start`, up to and with `end`."""

    start: ClusterTime
    end: ClusterTime


@dataclass(frozen=True)
class Standing:
    """Events derived from the jobs of a partition: those updated after `since` up to `until`, if given."""

    part: Partition
    since: int | None = None
    until: int | None = None


Part = Stretch | Standing


class Events:
    """The events of queues that are read as one: one change stream has them all."""

    def __init__(
        self, collections: Collections, queues: Sequence[str], store: str, now: ClusterTime | None = None
    ) -> None:
        self._collections = collections
        self._queues = queues
        self._store = store
        self._now = now

    def latest(self, start: Offset, max_rows: int | None) -> Offset:
        with self._collections.reaching():
            if self._collections.streams:
                return self._latest_change(start, max_rows)
            return self._latest_update(start, max_rows)

    def passed(self, offset: Offset, target: Offset) -> bool:
        if self._collections.streams:
            return _cluster_time(offset) >= _cluster_time(target)
        return bool(offset["at"] >= target["at"])

    def plan(self, start: Offset, end: Offset) -> Sequence[Part]:
        if not self._collections.streams:
            since = start["at"] - start.get("overlap", OVERLAP_MS)
            return [Standing(Partition(), since, end["at"])]
        if _cluster_time(start) > (0, 0):
            return [Stretch(_cluster_time(start), _cluster_time(end))]
        return [Standing(part) for part in partitions.plan(self._collections, self._named(), _SCAN_PARTS)]

    def read(self, part: Part) -> Iterator[pa.RecordBatch]:
        rows = Rows(EVENTS)
        with self._collections.reaching():
            for queue, one in self._changed(part) if isinstance(part, Stretch) else self._standing(part):
                rows.add(EventRow(self._store, queue, *one), len(one.data))
                if rows.full():
                    yield from rows.flush()
            yield from rows.flush()

    def _named(self) -> Document:
        return {"name": partitions.of_queues(self._queues)}

    # --- a replica set ----------------------------------------------------------------------------------------------

    def _latest_change(self, start: Offset, max_rows: int | None) -> Offset:
        before, now = _cluster_time(start), self._now or self._collections.majority_time()
        if before == (0, 0):
            return _offset(start, now)
        try:
            found = changes.nth(self._collections, before, now, max_rows or 1)
        except HistoryLost:
            return _offset(start, now)
        if found is None:
            return _offset(start, now) if now[0] - before[0] > _LEAST_PROGRESS else start
        return _offset(start, now if max_rows is None else found)

    def _changed(self, part: Stretch) -> Iterator[tuple[str, JobEvent]]:
        ours: dict[str, str] = {}
        gone: dict[Any, list[Mapping[str, Any]]] = {}
        try:
            for change in changes.read(self._collections, self._queues, part.start, part.end):
                key = str(change["documentKey"]["_id"])
                document: Document = change.get("fullDocument") or {}
                if document:
                    ours[key] = document["name"]
                if key in ours:
                    for event in document_events.by_change(change, document):
                        yield ours[key], event
                elif change["operationType"] != "delete":
                    gone.setdefault(change["documentKey"]["_id"], []).append(change)
                elif change["documentKey"]["_id"] in gone:
                    gone[change["documentKey"]["_id"]].append(change)
            yield from self._of_gone(gone, part)
        except HistoryLost:
            for queue in self._queues:
                yield queue, document_events.gap(part.start[0] * 1000, part.end[0] * 1000)
            yield from self._standing(Standing(Partition()))

    def _of_gone(
        self, gone: Mapping[Any, Sequence[Mapping[str, Any]]], part: Stretch
    ) -> Iterator[tuple[str, JobEvent]]:
        """Yields the events of jobs that are gone and of whose queue the stretch has nothing. A job whose queue can't
        be found may have been in any of them, so each gets a gap."""
        queues = changes.queues_of(self._collections, gone, part.end)
        for key, of_job in gone.items():
            queue = queues.get(key)
            if queue is not None and queue in self._queues:
                for change in of_job:
                    for event in document_events.by_change(change, {}):
                        yield queue, event
        if len(queues) < len(gone):
            for queue in self._queues:
                yield queue, document_events.gap(part.start[0] * 1000, part.end[0] * 1000)

    # --- what is there ----------------------------------------------------------------------------------------------

    def _standing(self, part: Standing) -> Iterator[tuple[str, JobEvent]]:
        condition = self._named()
        hint = "_id_"
        if part.since is not None and part.until is not None:
            condition["updatedAt"] = {"$gt": moment(part.since), "$lte": moment(part.until)}
            hint = None  # a job that moves along the index of times moves out of these, into the next look's
        noted = self._collections.has_notes()
        for some in jobs.documents(self._collections, part.part, condition, hint):
            notes = self._collections.notes([document["_id"] for document, _ in some]) if noted else {}
            for document, _ in some:
                for event in document_events.by_document(document, notes.get(str(document["_id"]))):
                    yield document["name"], event

    # --- a standalone server ----------------------------------------------------------------------------------------

    def _latest_update(self, start: Offset, max_rows: int | None) -> Offset:
        new = {"$gt": moment(start["at"]), "$lte": self._collections.clock()}
        condition = {**self._named(), "updatedAt": new}
        found = self._one(condition, -1)
        if found is None:
            return start
        if max_rows is not None:
            found = self._one(condition, 1, max_rows) or found
        return {**start, "at": ms_of(found)}

    def _one(self, condition: Document, way: int, skip: int = 0) -> datetime | None:
        order = [("updatedAt", way), ("_id", way)]
        found = list(self._collections.jobs.find(condition, {"updatedAt": 1}, sort=order, skip=skip, limit=1))
        return found[0]["updatedAt"] if found else None


def _cluster_time(offset: Offset) -> ClusterTime:
    return int(offset.get("t", 0)), int(offset.get("i", 0))


def _offset(start: Offset, time: ClusterTime) -> Offset:
    return {**start, "t": time[0], "i": time[1], "at": time[0] * 1000}
