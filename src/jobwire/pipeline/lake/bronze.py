"""Makes bronze smaller: merges the parts of many ingests, and removes those that are old.

Both are publications: a reader sees the parts as they were or as they are now, and a crash leaves them as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jobwire.errors import JobwireError
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


def day_of(table: SourceTable, key: str) -> str | None:
    """Returns the day of a part, as `2026-01-31`: of its events, or of the run that took the snapshot. None if the key
    has none."""
    if table.kind == "events":
        return key.partition("@")[0]
    digits = key[:8]
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}" if len(digits) == 8 and digits.isdigit() else None


def to_merge(table: SourceTable, pointer: Pointer, built: int) -> dict[str, dict[str, Part]]:
    """Returns the parts to merge by their day. `built` is the generation up to which a build has used the table.

    The newest batch of events stays as it is: Spark may repeat it after a crash, and finds it by its key. Snapshots
    that no build has used stay too: a merged part would be partly new.
    """
    most = pointer.generation - 1 if table.kind == "events" else built
    days: dict[str, dict[str, Part]] = {}
    for key, part in pointer.parts.items():
        day = day_of(table, key)
        if day is not None and part.generation <= most:
            days.setdefault(day, {})[key] = part
    return {day: parts for day, parts in days.items() if len(parts) >= MERGED_FROM}


def merge(
    lake: Lake, spark: SparkSession, table: SourceTable, days: Mapping[str, Mapping[str, Part]], run: str
) -> Pointer:
    """Merges the parts of each day into one."""
    replaced = {key: part for parts in days.values() for key, part in parts.items()}
    if table.kind == "events":
        rows = lake.parts(spark, table.path, replaced).hint("rebalance", "day")
        staged = lake.stage(table.path, rows, run)
        merged = {f"{day}@{run}": staged.parts[day] for day in days}
    else:
        merged = {}
        for day, parts in days.items():
            own = f"{day.replace('-', '')}T-{run}"
            staged = lake.stage(table.path, lake.parts(spark, table.path, parts).coalesce(1), f"{run}-{day}")
            merged[own] = next(iter(staged.parts.values()))
    kept: dict[str, Part] = {}
    for (key, part), (day, parts) in zip(merged.items(), days.items(), strict=True):
        rows_before = sum(one.rows for one in parts.values())
        if part.rows != rows_before:
            raise JobwireError(
                f"{table.path} in the lake at {lake.root} is not merged: {day} had {rows_before} rows and would have "
                f"{part.rows}. It stays as it is"
            )
        kept[key] = replace(part, generation=max(one.generation for one in parts.values()))
    new = Staged(table.path, columns_of(table.path), run, kept, onto=None)
    return lake.publish(new, replacing=replaced.keys())


def remove(lake: Lake, table: SourceTable, is_old: Callable[[str, Part], bool], run: str) -> Mapping[str, Part]:
    """Removes parts from a table. Their files go with the publication after this one."""
    before = lake.pointer(table.path)
    old = {} if before is None else {key: part for key, part in before.parts.items() if is_old(key, part)}
    if old:
        lake.publish(Staged(table.path, columns_of(table.path), run, {}, onto=None), replacing=old.keys())
    return old
