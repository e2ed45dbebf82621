"""Makes bronze smaller: merges the parts of many ingests, and removes those that are old.

Both happen in one publication: a reader sees the parts as they were or as they are now, and a crash leaves them as they
were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jobwire.errors import JobwireError
from jobwire.pipeline.lake import run_log
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.pointers import Part, Pointer
from jobwire.pipeline.lake.publication import Staged
from jobwire.pipeline.lake.tables import EVENTS, SNAPSHOT_TABLES, columns_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MERGED_FROM = 4
"""Parts of one day that are merged: fewer would be written again for little."""


@dataclass(frozen=True)
class SourceTable:
    """A table of one source in bronze. `kind` is its name in the state of bronze."""

    kind: str
    source: str

    @property
    def path(self) -> str:
        return f"{EVENTS if self.kind == 'events' else SNAPSHOT_TABLES[self.kind]}/{self.source}"


def source_tables(lake: Lake) -> list[SourceTable]:
    """Returns the tables of all sources to which each ingest adds."""
    roots = {"events": EVENTS, "jobs": SNAPSHOT_TABLES["jobs"], "deliveries": SNAPSHOT_TABLES["deliveries"]}
    return [SourceTable(kind, name) for kind, root in roots.items() for name in lake.files.folders(root)]


def day_of(table: SourceTable, key: str, part: Part) -> str | None:
    """Returns the day of a part, as `2026-01-31`: of its events, or of its snapshot. Where the snapshot has none, it is
    that of its run, which may be an ingest that has followed the store for long. None if the key has none either."""
    if table.kind == "events":
        return key.partition("@")[0]
    return max(part.reaches) if part.reaches else run_log.day_of(key)


@dataclass(frozen=True)
class Plan:
    """The changes of one table: parts in `old` are removed, and those of each day in `days` are merged."""

    table: SourceTable
    old: Mapping[str, Part]
    days: Mapping[str, Mapping[str, Part]]

    @property
    def replaced(self) -> dict[str, Part]:
        """Returns all parts that the table loses."""
        return {**self.old, **{key: part for parts in self.days.values() for key, part in parts.items()}}


def plan(table: SourceTable, pointer: Pointer, built: int, before: str | None) -> Plan:
    """Returns the plan for a table. `built` is the generation up to which a build has used it. Parts of days before
    `before` that a build has used are old.

    The newest batch of events is not merged: Spark may repeat it after a crash, and finds it by its key. Nor are
    snapshots that no build has used: a merged part would be partly new.
    """
    old: dict[str, Part] = {}
    days: dict[str, dict[str, Part]] = {}
    newest = max((part.generation for part in pointer.parts.values()), default=0)
    most = newest - 1 if table.kind == "events" else built
    for key, part in pointer.parts.items():
        day = day_of(table, key, part)
        if day is None:
            continue
        if before is not None and day < before and part.generation <= built:
            old[key] = part
        elif part.generation <= most:
            days.setdefault(day, {})[key] = part
    return Plan(table, old, {day: parts for day, parts in days.items() if len(parts) >= MERGED_FROM})


def carry_out(lake: Lake, session: Callable[[], SparkSession], plan: Plan, run: str) -> None:
    """Merges and removes parts with one publication. Their files go with the one after it. Asks for a session only to
    merge."""
    merged = _merged(lake, session(), plan, run) if plan.days else {}
    path = plan.table.path
    lake.publish(Staged(path, columns_of(path), run, merged, onto=None), replacing=plan.replaced.keys())


def _reaches(parts: Collection[Part]) -> list[str] | None:
    """Returns the days that parts reach together, or None if those of one are unknown."""
    known = [part.reaches for part in parts if part.reaches is not None]
    return sorted({day for days in known for day in days}) if len(known) == len(parts) else None


def _merged(lake: Lake, spark: SparkSession, plan: Plan, run: str) -> dict[str, Part]:
    """Writes one part for each day. Returns them by their keys."""
    path, merged = plan.table.path, dict[str, Part]()
    if plan.table.kind == "events":
        all_days = {key: part for parts in plan.days.values() for key, part in parts.items()}
        written = lake.stage(path, lake.parts(spark, path, all_days).hint("rebalance", "day"), run).parts
    else:
        written = {
            day: next(iter(lake.stage(path, lake.parts(spark, path, parts).coalesce(1), f"{run}-{day}").parts.values()))
            for day, parts in plan.days.items()
        }
    for day, parts in plan.days.items():
        rows = sum(part.rows for part in parts.values())
        if written[day].rows != rows:
            raise JobwireError(
                f"{path} in the lake at {lake.root} stays as it is: the parts of {day} have {rows} rows, and merged "
                f"they would have {written[day].rows}"
            )
        key = f"{day}@{run}" if plan.table.kind == "events" else f"{day.replace('-', '')}T-{run}"
        generation = max(part.generation for part in parts.values())
        merged[key] = replace(written[day], generation=generation, reaches=_reaches(parts.values()))
    return merged
