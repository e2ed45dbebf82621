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
from jobwire.pipeline.datasource.add_rows import added, with_presence
from jobwire.pipeline.move.order import Priorities
from jobwire.pipeline.move.plan import priorities_of, survey
from jobwire.pipeline.move.running_move import RunningMove
from jobwire.pipeline.move.schedules import ScheduleMove
from jobwire.pipeline.move.survey import moved_job
from jobwire.pipeline.stores.dialect import dialect_of


def freeze(running: RunningMove, schedules: Sequence[ScheduleMove]) -> None:
    """Writes the manifest: exactly the jobs that are moved, in their order. Nothing has been copied before this is
    done, so a job of the target with one of these ids is not a copy."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    route, journal, there = running.route, running.journal, running.there
    surveyed = survey(running.spark, route, running.here, there, schedules).persist()
    try:
        ids = surveyed.where("hindrance IS NULL").select("id", "target", F.lit(None).cast("string").alias("refused"))
        taken = with_presence(ids, there.url, route.to_queue).where("held").select("id", F.lit(True).alias("taken"))
        rows = (
            surveyed.join(taken, "id", "left")
            .withColumn("hindrance", F.when(F.col("taken"), "taken").otherwise(F.col("hindrance")))
            .persist()
        )
        stopping = (
            rows.where("hindrance IS NOT NULL AND hindrance <> 'schedules'")
            .groupBy("hindrance")
            .agg(F.count("*").alias("count"), F.min("id").alias("example"))
            .collect()
        )
        if stopping and not route.leave:
            found = "; ".join(
                f"{row['hindrance']}: {counted(row['count'], 'job')}, such as {row['example']}" for row in stopping
            )
            raise JobwireError(f"{route.queue!r} can't be moved as it is, nothing was changed: {found}")
        movable = rows.where("hindrance IS NULL").drop("taken", "hindrance", "reason", "lost")
        ordered = movable.repartition(1).sortWithinPartitions(*dialect_of(route.from_protocol).run_order())
        # This function numbers the rows of a partition from 0, and there is one partition.
        running.lake.set_aside(running.path("manifest"), ordered.withColumn("rank", F.monotonically_increasing_id()))
        journal.priorities = priorities_of(route, movable).as_note()
        journal.left = sum(row["count"] for row in stopping)
        rows.unpersist()
    finally:
        surveyed.unpersist()
    journal.moving = running.manifest().count()
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
    """Adds the jobs of the manifest in one task, in their order: a second attempt continues where the first one ended.
    Returns how many jobs were refused for each reason."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    route, journal = running.route, running.journal
    priorities = Priorities.from_note(journal.priorities)
    copier = Copier(route.to_protocol, route.to_queue, priorities, journal.frozen_at - journal.moving / 1000)
    rank = F.col("rank")
    if dialect_of(route.to_protocol).newest_first_above_zero:
        # The job that is added last runs first, so the one that runs last is added first.
        front = (F.col("level") > 0) & ~F.col("late")
        keys = [~front, F.when(front, -rank).otherwise(rank)]
    else:
        keys = [rank]
    rows = running.manifest().repartition(1).sortWithinPartitions(*keys)
    answers = added(rows, running.there.url, route.to_queue, copier)
    return {row["refused"]: row["count"] for row in answers.groupBy("refused").count().collect() if row["refused"]}
