"""A move under way: what its steps share."""

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
    """`here` is the source, `there` the target."""

    spark: SparkSession
    route: Route
    lake: Lake
    here: BlockingBackend
    there: BlockingBackend
    journal: Journal
    progress: Progress

    def enter(self, step: str) -> None:
        """The move has come to this step, and will go on from it."""
        self.journal.enter(step, self.lake)

    def save(self) -> None:
        self.journal.save(self.lake)

    def manifest(self) -> DataFrame:
        """The jobs that are moved: columns of SURVEYED that say what each will be, and `rank` in the order of runs."""
        return self.lake.aside(self.spark, self.path("manifest"))

    def path(self, table: str) -> str:
        return f"{self.journal.name}/{table}"
