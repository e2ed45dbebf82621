"""Silver deliveries: one row per message of a campaign to a channel, as it was last seen."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.lake.campaign_schemas import SILVER_DELIVERIES
from jobwire.pipeline.lake.schemas import QUARANTINE
from jobwire.pipeline.spark.utc import utc_day

KEY = ["store", "id"]


def delivery_day() -> Column:
    """Returns the day that a row of bronze belongs to. It never changes: the time of creation does not, and a row
    without one belongs to the first day of all."""
    return F.coalesce(utc_day(F.col("created_at")), F.lit("1970-01-01").cast("date"))


def silver_deliveries(snapshots: DataFrame) -> DataFrame:
    """Returns each delivery as the newest of the given rows of bronze has it."""
    newest_first = [
        F.desc("seen_at"),
        F.col("status").isin("SENT", "FAILED").desc(),
        F.desc("attempts"),
        F.desc_nulls_last("started_at"),
    ]
    same = Window.partitionBy(*KEY).orderBy(*newest_first)
    return (
        snapshots.where("malformed is null")
        .withColumn("reading", F.row_number().over(same))
        .where("reading = 1")
        .withColumn("day", delivery_day())
        .select(*SILVER_DELIVERIES.names)
    )


def quarantine(*tables: tuple[str, DataFrame]) -> DataFrame:
    """Returns the malformed rows of bronze, each once, as it was first seen. Tables are given with their names."""
    found: list[DataFrame] = []
    for name, rows in tables:
        whole = [column for column in rows.columns if column not in (*KEY, "malformed", "seen_at", "run")]
        bad = rows.where("malformed is not null").select(
            *KEY,
            F.lit(name).alias("source"),
            F.col("malformed").alias("reason"),
            F.to_json(F.struct(*whole)).alias("record"),
            "seen_at",
        )
        found.append(bad)
    return (
        reduce(DataFrame.unionByName, found)
        .groupBy(*KEY, "source", "reason")
        .agg(F.min(F.struct("seen_at", "record")).alias("first"))
        .select(
            "store",
            F.lit(None).cast("string").alias("queue"),
            "source",
            "id",
            "reason",
            "first.record",
            "first.seen_at",
            utc_day(F.col("first.seen_at")).alias("day"),
        )
        .select(*QUARANTINE.names)
    )
