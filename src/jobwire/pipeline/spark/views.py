"""Views of a lake's tables in a Spark session, for SQL: `silver/jobs` is the view `silver_jobs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.tables import PUBLISHED, SNAPSHOT_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def create_views(spark: SparkSession, lake: Lake) -> list[str]:
    """Creates a view of each table that the lake has, as it is now, and of the run log. Returns their names, sorted."""
    frames = {name: lake.table(spark, name) for name in PUBLISHED if lake.pointer(name) is not None}
    frames |= {
        root: lake.snapshots(spark, table=table)
        for table, root in SNAPSHOT_TABLES.items()
        if lake.snapshot_generations(table)
    }
    if lake.files.folders("bronze/events"):
        frames["bronze/events"] = lake.bronze_events(spark)
    frames["runs"] = lake.runs(spark)
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name.replace("/", "_"))
    return sorted(name.replace("/", "_") for name in frames)
