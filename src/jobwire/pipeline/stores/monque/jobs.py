"""Reads the jobs of one partition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import cast

import pyarrow as pa
from pymongo.client_session import ClientSession

from jobwire.backends.monque.connection.clock import now_ms
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.stores.batches import Rows
from jobwire.pipeline.stores.boundary import BATCH_ROWS
from jobwire.pipeline.stores.monque.mongo import Collections, Document
from jobwire.pipeline.stores.monque.partitions import Partition
from jobwire.pipeline.stores.monque.rows import Records, decode


def read(collections: Collections, part: Partition, condition: Document, store: str) -> Iterator[pa.RecordBatch]:
    """Yields the jobs of one partition in the columns of `JOBS`."""
    records = Records(store, collections.address.max_retries, now_ms())
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
    collections: Collections, part: Partition, condition: Document, hint: str | None = "_id_"
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
