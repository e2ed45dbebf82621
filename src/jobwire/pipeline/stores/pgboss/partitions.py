"""Partitions of a queue: ranges of ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobwire.model import State
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.pgboss.database import Database
from jobwire.pipeline.stores.pgboss.table import QueueTable
from jobwire.pipeline.stores.postgresio.id_ranges import id_ranges

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
    return [Partition(low, high) for low, high in id_ranges(database, table.name, condition, parts)]


def condition_of(database: Database, queues: Sequence[str], wanted: Wanted) -> str:
    """Returns the condition for the rows that are wanted, as far as an index or a cheap check can tell."""
    literal = database.literal
    parts = [
        f"j.name = {literal(queues[0])}" if len(queues) == 1 else f"j.name = ANY ({literal(list(queues))}::text[])"
    ]
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
