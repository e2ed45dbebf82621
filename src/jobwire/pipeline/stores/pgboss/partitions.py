"""Partitions of a queue: ranges of ids.

The distribution of ids is unknown: random ones are even, jobwire's own grow with time, loaded ones are hashes. The
bounds are therefore taken from ids that exist.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobwire.model import State
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.pgboss.database import Database
from jobwire.pipeline.stores.pgboss.table import QueueTable

_SMALL = 2_000
"""Blocks of a table (16 MB) up to which all ids are read."""
_SAMPLED = 1_000
"""Blocks to read of a larger one. Jobs of one block are neighbours in time, so blocks count, not rows."""
_ENOUGH = 50
"""Ids per partition that a sample must have. A queue with fewer is a small part of its table, and is read whole."""
_WORTH = 1_000
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
class Partition:
    """Ids from `low` on, before `high`. None leaves that side open."""

    low: str | None = None
    high: str | None = None

    @property
    def condition(self) -> str:
        low = f" AND j.id >= '{self.low}'::uuid" if self.low is not None else ""
        return low + (f" AND j.id < '{self.high}'::uuid" if self.high is not None else "")


def plan(database: Database, table: QueueTable, condition: str, parts: int) -> list[Partition]:
    """Returns about `parts` partitions of the rows that the condition lets through."""
    [(blocks,)] = database.ask(f"SELECT pg_relation_size({table.oid}::regclass) / current_setting('block_size')::int")
    count, bounds = 0, []
    if blocks > _SMALL:
        sample = f"TABLESAMPLE SYSTEM ({100 * _SAMPLED / blocks:.6f})"
        count, bounds = _bounds(database, table, condition, parts, sample)
    estimate = count * blocks // _SAMPLED
    if count < _ENOUGH * parts:
        estimate, bounds = _bounds(database, table, condition, parts, "")
    fewer = min(parts, max(1, estimate // _WORTH))
    marks = sorted({bounds[number * parts // fewer - 1] for number in range(1, fewer)})
    return [Partition(low, high) for low, high in zip([None, *marks], [*marks, None], strict=True)]


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
