"""Reads the partitions of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from jobwire.model import State
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.stores.batches import Rows
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.bridgemq.documents import Documents, Entry, Stored
from jobwire.pipeline.stores.bridgemq.index import CONTAINERS, Container, Index
from jobwire.pipeline.stores.bridgemq.partitions import Part, Range, running
from jobwire.pipeline.stores.bridgemq.rows import Records
from jobwire.pipeline.stores.redisio.partitions import Bound

_SKEW_MS = 10_000
"""Workers write the times at which jobs finish by clocks of their own."""


def read(index: Index, store: str, part: Part, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yields the jobs of a partition, as rows."""
    rows, records = Rows(JOBS), Records(store, index.kind)
    for stored in stored_jobs(index, part):
        row = records.row(stored)
        if row is not None and wanted.row(row):
            rows.add(row, stored.size)
        if rows.full():
            yield from rows.flush()
    yield from rows.flush()


def stored_jobs(index: Index, part: Part) -> Iterator[Stored]:
    """Yields everything that the store holds of the jobs of a partition."""
    documents = Documents(index)
    lost = False
    for one in part.ranges:
        container = CONTAINERS[one.container]
        for entries in _entries(index, container, one):
            yield from documents.read(container, entries)
        lost = lost or _has_lost(index, container, one)
    if lost:
        recent = Bound(b"%d" % (part.since_ms - _SKEW_MS))
        chased = [Range("claims"), Range("completed", recent), Range("dead", recent)]
        # The running jobs come after the waiting ones in a partition: if it has them, they have been read late enough.
        for one in chased if all(one.container != "claims" for one in part.ranges) else chased[1:]:
            container = CONTAINERS[one.container]
            for entries in _entries(index, container, one):
                yield from documents.read(container, entries)


def _entries(index: Index, container: Container, one: Range) -> Iterator[Sequence[Entry]]:
    if container.state is State.ACTIVE:
        yield [Entry(job_id, claim=record) for job_id, record in index.claims().items()]
        return
    rank = one.rank
    for page in index.members(one.container, one.low, one.high):
        numbers: Sequence[int | None] = range(rank, rank + len(page)) if container.in_order else [None] * len(page)
        yield [Entry(one.id, number, one.score) for one, number in zip(page, numbers, strict=True)]
        rank += len(page)


def _has_lost(index: Index, container: Container, one: Range) -> bool:
    """Returns True if jobs may have left the range since the plan. Of the running ones any may; of others the first
    leaves first."""
    if container.state is State.ACTIVE:
        return one.near != running(index)
    gone = one.near and index.connection.call("ZSCORE", index.key(one.container), one.near) is None
    return bool(gone) and not container.state.finished
