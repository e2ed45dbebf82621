"""Reads a queue's jobs in partitions of id ranges.

The distribution of ids is unknown: random ones are even, jobwire's own grow with time, loaded ones are hashes. The
bounds are therefore taken from ids that exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from jobwire.model import State
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.pgboss.database import Database
from jobwire.pipeline.stores.pgboss.json_text import compact
from jobwire.pipeline.stores.pgboss.table import ERROR, FINGERPRINT, RESULT, STACK, QueueTable

_ASKED = JOBS.without(["store", "queue", "name", "position", "parent", "worker"])
_JSON = ("payload", "result", "raw")
_SMALL = 2_000
"""Blocks of a table (16 MB) up to which all ids are read."""
_SAMPLED = 1_000
"""Blocks to read of a larger one. Jobs of one block are neighbours in time, so blocks count, not rows."""
_ENOUGH = 50
"""Ids per partition that a sample must have. A queue with fewer is a small part of its table, and is read whole."""
_SLICE = 1_000
"""Jobs that are worth a partition of their own."""
_NATIVE = {
    State.WAITING: ("created", "retry"),
    State.DELAYED: ("created", "retry"),
    State.WAITING_CHILDREN: ("created", "retry"),
    State.ACTIVE: ("active",),
    State.COMPLETED: ("completed",),
    State.FAILED: ("failed",),
    State.CANCELLED: ("cancelled",),
}


@dataclass(frozen=True)
class Slice:
    """Ids from `low` on, before `high`. None leaves that side open."""

    low: str | None = None
    high: str | None = None

    @property
    def condition(self) -> str:
        low = f" AND j.id >= '{self.low}'::uuid" if self.low is not None else ""
        return low + (f" AND j.id < '{self.high}'::uuid" if self.high is not None else "")


def plan(database: Database, table: QueueTable, condition: str, parts: int) -> list[Slice]:
    """Returns about `parts` partitions of the rows that the condition lets through."""
    [(blocks,)] = database.ask(f"SELECT pg_relation_size({table.oid}::regclass) / current_setting('block_size')::int")
    count, bounds = 0, []
    if blocks > _SMALL:
        sample = f"TABLESAMPLE SYSTEM ({100 * _SAMPLED / blocks:.6f})"
        count, bounds = _bounds(database, table, condition, parts, sample)
    estimate = count * blocks // _SAMPLED
    if count < _ENOUGH * parts:
        estimate, bounds = _bounds(database, table, condition, parts, "")
    fewer = min(parts, max(1, estimate // _SLICE))
    marks = sorted({bounds[number * parts // fewer - 1] for number in range(1, fewer)})
    return [Slice(low, high) for low, high in zip([None, *marks], [*marks, None], strict=True)]


def _bounds(database: Database, table: QueueTable, condition: str, parts: int, sample: str) -> tuple[int, list[str]]:
    query = database.fitted("bounds", job=table.name, sample=sample, condition=condition)
    [(count, bounds)] = database.ask(query, [[number / parts for number in range(1, parts)]])
    return count, bounds or []


def condition_of(database: Database, queue: str, wanted: Wanted) -> str:
    """Returns the condition for the rows that are wanted, as far as an index or a cheap check can tell."""
    literal = database.literal
    parts = [f"j.name = {literal(queue)}"]
    if wanted.states is not None:
        native = sorted({state for one in wanted.states for state in _NATIVE.get(one, ())})
        parts.append(f"j.state IN ({', '.join(map(literal, native))})" if native else "false")
    if wanted.created_from is not None:
        parts.append(f"j.created_on >= {literal(wanted.created_from)}")
    if wanted.created_before is not None:
        parts.append(f"j.created_on < {literal(wanted.created_before)}")
    only_finished = wanted.states is not None and all(state.finished for state in wanted.states)
    for bound, compared in ((wanted.finished_from, ">="), (wanted.finished_before, "<")):
        if bound is not None:
            finished = f"j.completed_on {compared} {literal(bound)}"
            parts.append(finished if only_finished else f"({finished} OR j.completed_on IS NULL)")
    return " AND ".join(parts)


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
