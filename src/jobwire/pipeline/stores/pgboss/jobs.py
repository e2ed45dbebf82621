"""Reads the jobs of one partition."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.stores.pgboss.database import Database
from jobwire.pipeline.stores.pgboss.json_text import compact
from jobwire.pipeline.stores.pgboss.table import ERROR, FINGERPRINT, RESULT, STACK, QueueTable

_ASKED = JOBS.without(["store", "queue", "name", "position", "parent", "worker"])
_JSON = ("payload", "result", "raw")


def read(database: Database, table: QueueTable, condition: str, store: str, queue: str) -> Iterator[pa.RecordBatch]:
    """Yields the jobs of one partition in the columns of `JOBS`."""
    progress = "(SELECT p.value FROM {side}.progress p WHERE p.name = j.name AND p.id = j.id)"
    query = database.fitted(
        "jobs",
        job=table.name,
        blocked=table.flag("blocked"),
        result=RESULT,
        error=ERROR,
        stack=STACK,
        progress=progress.format(side=database.layout.side) if table.has_side else "NULL::text",
        created_on=table.time("created_on"),
        start_after=table.time("start_after"),
        started_on=table.time("started_on"),
        completed_on=table.time("completed_on"),
        raw=table.raw,
        fingerprint=FINGERPRINT,
        malformed=table.malformed,
        condition=condition,
    )
    for batch in database.batches(query, _ASKED.arrow):
        yield _whole(batch, {"store": store, "queue": queue, "name": queue})


def _whole(batch: pa.RecordBatch, constants: dict[str, str]) -> pa.RecordBatch:
    columns: list[pa.Array] = []
    for field in JOBS.arrow:
        if field.name in constants:
            columns.append(pa.repeat(constants[field.name], batch.num_rows).cast(field.type))
        elif field.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            column = batch.column(field.name)
            columns.append(compact(column) if field.name in _JSON else column)
    return pa.record_batch(columns, schema=JOBS.arrow)
