"""Writes the manifest of a move, and adds its jobs to the target in the order in which they would have run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from jobwire.boundary import Backend, PreparedJob
from jobwire.counted import counted
from jobwire.errors import JobwireError
from jobwire.pipeline.datasource.add_rows import added
from jobwire.pipeline.move.order import Priorities
from jobwire.pipeline.move.plan import priorities_for, survey
from jobwire.pipeline.move.running_move import RunningMove
from jobwire.pipeline.move.schedules import ScheduleMove
from jobwire.pipeline.move.survey import moved_job
from jobwire.pipeline.stores.dialect import dialect_of

_FEW, _TASKS = 5_000, 4


def freeze(running: RunningMove, schedules: Sequence[ScheduleMove]) -> None:
    """Writes the manifest: exactly the jobs that are moved, in their order. Nothing has been copied before this is
    done, so a job of the target with one of these ids is not a copy."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    route, journal, there = running.route, running.journal, running.there
    rows = survey(running.spark, route, running.here, there, schedules, asks=True).persist()
    try:
        groups = rows.groupBy("hindrance").agg(
            F.count("*").alias("count"), F.min("id").alias("example"), F.min("level"), F.max("level")
        )
        found = groups.collect()
        stopping = [row for row in found if row["hindrance"] not in (None, "schedules")]
        if stopping and not route.leave:
            named = "; ".join(
                f"{row['hindrance']}: {counted(row['count'], 'job')}, such as {row['example']}" for row in stopping
            )
            raise JobwireError(f"{route.queue!r} can't be moved as it is, nothing was changed: {named}")
        movable = rows.where("hindrance IS NULL").drop("hindrance", "reason", "lost")
        ordered = movable.repartition(1).sortWithinPartitions(*dialect_of(route.from_protocol).run_order())
        # This function numbers the rows of a partition from 0, and there is one partition.
        running.lake.set_aside(running.path("manifest"), ordered.withColumn("rank", F.monotonically_increasing_id()))
        levels = [row[f"{end}(level)"] for row in found if row["hindrance"] is None for end in ("min", "max")]
        journal.priorities = priorities_for(route, [one for one in levels if one is not None], movable).as_note()
        journal.left = sum(row["count"] for row in stopping)
    finally:
        rows.unpersist()
    journal.moving = running.lake.files.count(f"workings/{running.path('manifest')}")
    journal.frozen_at = time.time()


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
        if dialect.runs_by_due_time and not row["late"]:
            due = datetime.fromtimestamp(self.first_due + row["rank"] / 1000, UTC)
            row = {**row, "late": True, "run_at": due}
        priority = self.priorities.number(row["level"], row["own_priority"])
        return moved_job(backend, dialect, self.queue, row, priority)


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
    if target.runs_by_due_time and journal.moving > _FEW:
        # Each job has a due time of its own, so that portions may be added in any order.
        rows = running.manifest().repartitionByRange(_TASKS, "rank").sortWithinPartitions("rank")
    else:
        rows = running.manifest().repartition(1).sortWithinPartitions(*keys)
    answers = added(rows, running.there.url, route.to_queue, copier)
    return {row["refused"]: row["count"] for row in answers.groupBy("refused").count().collect() if row["refused"]}
