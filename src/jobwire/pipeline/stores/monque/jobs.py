"""Reads a queue's jobs in partitions of `_id` ranges, with bounds from a sample.

Partitions follow the index of `_id`, which never changes: a scan of an index of states can miss a job that moves during
the scan. A queue that is a small part of a large collection is read by its name in one partition instead, from a
snapshot, where nothing moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import pyarrow as pa
from pymongo.client_session import ClientSession

from jobwire.backends.monque.codec import STATES
from jobwire.backends.monque.connection.clock import now_ms
from jobwire.model import State
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.stores.batches import Rows
from jobwire.pipeline.stores.boundary import BATCH_ROWS, Wanted
from jobwire.pipeline.stores.monque.mongo import Collections, Document
from jobwire.pipeline.stores.monque.rows import Records, decode

_SAMPLE = 2_000
_SMALL_PART = 0.05
_LARGE = 100_000
_SLICE = 1_000
"""Jobs that are worth a partition of their own."""
_NATIVE = {**{state: status for status, state in STATES.items()}, State.DELAYED: "pending"}
_FINISHED = [status for status, state in STATES.items() if state.finished]


@dataclass(frozen=True)
class Slice:
    """`_id`s from `low` on, before `high`. None leaves that side open."""

    low: Any = None
    high: Any = None
    by_name: bool = False
    """No range: all jobs of the queue, found by its name, as of one moment."""


def plan(collections: Collections, condition: Document, parts: int) -> list[Slice]:
    stages: list[Document] = [
        {"$sample": {"size": _SAMPLE}},
        {"$match": condition},
        {"$project": {"_id": 1}},
        {"$sort": {"_id": 1}},
    ]
    with collections.reaching():
        total = collections.jobs.estimated_document_count()
        found = [one["_id"] for one in collections.jobs.aggregate(stages, allowDiskUse=True)]
    share = len(found) / max(1, min(_SAMPLE, total))
    if share < _SMALL_PART and total > _LARGE and collections.streams:
        return [Slice(by_name=True)]
    parts = min(parts, max(1, int(total * share) // _SLICE), max(1, len(found) // 5))
    marks: list[Any] = []
    for number in range(1, parts):
        mark = found[len(found) * number // parts]
        if not marks or marks[-1] != mark:
            marks.append(mark)
    return [Slice(low, high) for low, high in zip([None, *marks], [*marks, None], strict=True)]


def condition_of(queue: str, wanted: Wanted) -> Document:
    """Returns the condition for the documents that are wanted, as far as the server can check it."""
    condition: Document = {"name": queue}
    only_finished = False
    if wanted.states is not None:
        condition["status"] = {"$in": sorted({_NATIVE[state] for state in wanted.states if state in _NATIVE})}
        only_finished = all(state.finished for state in wanted.states)
    created = _between(wanted.created_from, wanted.created_before)
    if created:
        condition["createdAt"] = created
    finished = _between(wanted.finished_from, wanted.finished_before)
    if finished and only_finished:
        condition["updatedAt"] = finished
    elif finished:
        condition["$or"] = [{"updatedAt": finished}, {"status": {"$nin": _FINISHED}}]
    return condition


def _between(start: datetime | None, before: datetime | None) -> Document:
    bounds: Document = {}
    if start is not None:
        # MongoDB keeps milliseconds: the whole millisecond of the bound counts.
        bounds["$gte"] = start.replace(microsecond=start.microsecond // 1000 * 1000)
    if before is not None:
        bounds["$lt"] = before
    return bounds


def read(
    collections: Collections, part: Slice, condition: Document, store: str, queue: str
) -> Iterator[pa.RecordBatch]:
    """Yields the jobs of one partition in the columns of `JOBS`."""
    records = Records(store, queue, collections.address.max_retries, now_ms())
    rows = Rows(JOBS)
    with collections.reaching():
        noted = collections.has_notes()
        for some in documents(collections, part, condition):
            # Side data after the jobs: a job that was read as completed has its result there already.
            notes = collections.notes([document["_id"] for document, _ in some]) if noted else {}
            for document, stored in some:
                rows.add(records.row(document, stored, notes.get(str(document["_id"]))), len(stored))
                if rows.full():
                    yield from rows.flush()
        yield from rows.flush()


def documents(
    collections: Collections, part: Slice, condition: Document, hint: str | None = "_id_"
) -> Iterator[list[tuple[Document, bytes]]]:
    """Yields the partition's documents, with their stored bytes, as many at a time as the server sends."""
    with _snapshot(collections) if part.by_name else nullcontext() as session:
        cursor = collections.jobs.find_raw_batches(condition, session=session, batch_size=BATCH_ROWS)
        if hint is not None and not part.by_name:
            # Bounds of the index, not of a comparison: that would leave out `_id`s of other types.
            cursor = cursor.hint(hint)
            cursor = cursor if part.low is None else cursor.min([("_id", part.low)])
            cursor = cursor if part.high is None else cursor.max([("_id", part.high)])
        for batch in cursor:
            some = [(decode(stored), stored) for stored in _parted(cast(bytes, batch))]
            if some:
                yield some


def _snapshot(collections: Collections) -> ClientSession:
    return collections.client.start_session(snapshot=True)


def _parted(batch: bytes) -> Iterator[bytes]:
    """Yields single BSON documents of a batch: each begins with its length."""
    start = 0
    while start < len(batch):
        end = start + int.from_bytes(batch[start : start + 4], "little")
        yield batch[start:end]
        start = end
