"""The objects that the steps of a move share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.move.journal import Journal
from jobwire.pipeline.move.route import Route
from jobwire.pipeline.spark.progress import Progress
from jobwire.pipeline.stores.blocking import BlockingBackend

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class RunningMove:
    """A move in progress. `here` is the source, `there` the target."""

    spark: SparkSession
    route: Route
    lake: Lake
    here: BlockingBackend
    there: BlockingBackend
    journal: Journal
    progress: Progress

    def enter(self, step: str) -> None:
        """Records in the journal that the move has reached this step."""
        self.journal.enter(step, self.lake)

    def save(self) -> None:
        self.journal.save(self.lake)

    def manifest(self) -> DataFrame:
        """Returns the jobs that are moved, in the columns of SURVEYED, with their `rank` in the order of runs."""
        rows = self.lake.aside(self.spark, self.path("manifest"))
        return rows.where(rows["rank"] < self.journal.moving)

    def path(self, table: str) -> str:
        return f"{self.journal.name}/{table}"
