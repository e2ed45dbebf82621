"""Writes the manifest of a move, and adds its jobs to the target in the order in which they would have run."""

# Arrow makes its compute functions when it is imported, unseen by the checker.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow.compute as pc

from jobwire.boundary import Backend, PreparedJob
from jobwire.counted import counted
from jobwire.errors import JobwireError
from jobwire.pipeline.datasource.add_rows import refusals
from jobwire.pipeline.lake.schemas import columns
from jobwire.pipeline.move.moved_job import Asked, moment, moved_job, options_of
from jobwire.pipeline.move.order import Priorities
from jobwire.pipeline.move.plan import once, priorities_for, survey
from jobwire.pipeline.move.running_move import RunningMove
from jobwire.pipeline.move.schedules import ScheduleMove
from jobwire.pipeline.stores.dialect import dialect_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEW, _TASKS = 5_000, 4
_COPIED = (
    *("id", "target", "late", "level", "own_priority", "name", "payload", "attempts", "unique_key", "options"),
    "rank",
)
"""The columns of the manifest that a copy is made from, beside its times."""
_TALLIED = columns("id string", "level bigint", "hindrance string")


def freeze(running: RunningMove, schedules: Sequence[ScheduleMove]) -> None:
    """Writes the manifest: the jobs that are moved, in their order, and after them those that can't be. Nothing has
    been copied before this is done, so a job of the target with one of these ids is not a copy."""
    route, journal, there = running.route, running.journal, running.there
    found = survey(running.spark, route, running.here, there, schedules, asks=True)
    rows = found.drop("reason", "lost").repartition(1)
    tally = _written(running, rows)
    if tally.twice:  # a job has changed its state while the source was read
        tally = _written(running, once(rows))
    stopping = [one for what, one in sorted(tally.hindered.items()) if what != "schedules"]
    if stopping and not route.leave:
        named = "; ".join(f"{one.what}: {counted(one.count, 'job')}, such as {one.example}" for one in stopping)
        raise JobwireError(f"{route.queue!r} can't be moved as it is, nothing was changed: {named}")
    journal.moving = tally.movable
    journal.priorities = priorities_for(route, tally.levels, running.manifest()).as_note()
    journal.left = sum(one.count for one in stopping)
    journal.frozen_at = time.time()


def _written(running: RunningMove, rows: DataFrame) -> _Tally:
    """Writes the manifest. Finds out afterwards whether a job is in it twice: to prevent it would mean one more sort of
    all rows, for what happens seldom."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    # What can't be moved comes last, so that the ranks of what can are the numbers from 0 on.
    order = [F.col("hindrance").isNotNull(), *dialect_of(running.route.from_protocol).run_order()]
    # This function numbers the rows of a partition from 0, and there is one partition.
    ranked = rows.sortWithinPartitions(*order).withColumn("rank", F.monotonically_increasing_id())
    running.lake.set_aside(running.path("manifest"), ranked)
    return _tally(running)


@dataclass
class _Hindered:
    """The jobs that can't be moved for one reason."""

    what: str
    example: str
    count: int = 0


@dataclass
class _Tally:
    """Counts of the rows of the manifest. `levels` are the lowest and the highest one of the jobs that can be moved."""

    movable: int = 0
    levels: tuple[int, ...] = ()
    hindered: dict[str, _Hindered] = field(default_factory=dict[str, _Hindered])
    twice: bool = False
    """True if an id may be there twice. It is certain that none is if it is false."""


def _tally(running: RunningMove) -> _Tally:
    """Counts the rows of the manifest, by a few of its columns. Keeps eight bytes for each job."""
    tally, hashes = _Tally(), array("q")
    for batch in running.lake.files.batches(f"workings/{running.path('manifest')}", _TALLIED.arrow):
        hashes.extend(map(hash, batch.column("id").to_pylist()))
        hindrances = batch.column("hindrance")
        movable = batch.filter(hindrances.is_null())
        if movable.num_rows:
            ends = pc.min_max(movable.column("level"))
            levels = [ends["min"].as_py(), ends["max"].as_py(), *tally.levels]
            tally.levels = (min(levels), max(levels))
            tally.movable += movable.num_rows
        for row in cast("list[dict[str, Any]]", batch.filter(hindrances.is_valid()).to_pylist()):
            one = tally.hindered.setdefault(row["hindrance"], _Hindered(row["hindrance"], row["id"]))
            one.example = min(one.example, row["id"])
            one.count += 1
    tally.twice = len(np.unique(np.frombuffer(hashes, np.int64))) < len(hashes) if hashes else False
    return tally


@dataclass(frozen=True)
class Copier:
    """Makes the job of a row of the manifest."""

    protocol: str
    queue: str
    priorities: Priorities
    first_due: float
    """In seconds. Where jobs run by due time, those that are ready get due times from here on, 1 ms apart."""

    def __call__(self, backend: Backend, row: Mapping[str, Any]) -> PreparedJob:
        dialect = dialect_of(self.protocol)
        due = moment(row["due"]) if row["late"] and row["due"] is not None else None
        if dialect.runs_by_due_time and not row["late"]:
            due = datetime.fromtimestamp(self.first_due + row["rank"] / 1000, UTC)
        asked = Asked(
            id=row["target"],
            name=row["name"],
            payload=row["payload"].encode(),
            attempts=row["attempts"],
            unique_key=row["unique_key"],
            created_at=None if row["created"] is None else moment(row["created"]),
            due=due,
            options=options_of(row["options"]),
            priority=self.priorities.number(row["level"], row["own_priority"]),
        )
        return moved_job(backend, dialect, self.queue, asked)


def copy(running: RunningMove) -> Mapping[str, int]:
    """Adds the jobs of the manifest in their order, by one task where the target runs them as they arrive: a second
    attempt continues where the first one ended. Returns how many jobs were refused for each reason."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    route, journal = running.route, running.journal
    priorities = Priorities.from_note(journal.priorities)
    copier = Copier(route.to_protocol, route.to_queue, priorities, journal.frozen_at - journal.moving / 1000)
    rank, target = F.col("rank"), dialect_of(route.to_protocol)
    if target.newest_first_above_zero:
        # The job that is added last runs first, so the one that runs last is added first.
        front = (F.col("level") > 0) & ~F.col("late")
        keys = [~front, F.when(front, -rank).otherwise(rank)]
    else:
        keys = [rank]
    manifest = running.manifest().select(
        *_COPIED, F.unix_micros("run_at").alias("due"), F.unix_micros("created_at").alias("created")
    )
    if target.runs_by_due_time and journal.moving > _FEW:
        # Each job has a due time of its own, so that portions may be added in any order.
        rows = manifest.repartitionByRange(_TASKS, "rank").sortWithinPartitions("rank")
    else:
        rows = manifest.repartition(1).sortWithinPartitions(*keys)
    refused = refusals(rows, running.there.url, route.to_queue, copier)
    return {
        row["refused"]: row["count"] for row in refused.groupBy("refused").agg(F.sum("count").alias("count")).collect()
    }
