"""Builds the tables of campaigns from bronze, if a campaigns' database was ingested.

Deliveries that new rows of bronze concern replace their old rows in silver, so an incremental build and one from
scratch give the same rows. Gold is made again from silver. What was built up to is recorded last.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.history import gold_campaigns
from jobwire.pipeline.history.silver_deliveries import delivery_day, quarantine, silver_deliveries
from jobwire.pipeline.lake.lake import Lake

_MARKS = "checkpoints/build_campaigns.json"
_READ = ("deliveries", "campaigns", "channels")


class CampaignBuild:
    """The part of one build that concerns campaigns. Bronze is what it was when the build began."""

    def __init__(self, spark: SparkSession, lake: Lake, run: str) -> None:
        self._spark = spark
        self._lake = lake
        self._run = run
        self._before: dict[str, Any] = lake.files.read(_MARKS) or {}
        self._generations = {table: lake.snapshot_generations(table) for table in _READ}

    @property
    def has_rows(self) -> bool:
        """Returns whether a campaigns' database was ingested."""
        return any(self._generations.values())

    @property
    def rows_in_bronze(self) -> int:
        """Returns how many deliveries were read so far, some of them more than once."""
        return self._lake.snapshot_rows(table="deliveries")

    def all_new(self) -> int:
        """Builds what came since the last build. Returns the number of new rows of bronze."""
        if not self.has_rows or self._generations == self._before:
            return 0
        rows = self._renew(self._lake.snapshots(self._spark, self._before.get("deliveries"), "deliveries"))
        self._make_gold()
        self._lake.files.write(_MARKS, self._generations)
        return rows

    def of_days(self, since: date, until: date) -> int:
        """Builds deliveries created in [since, until) again. What was built up to does not change."""
        if not self.has_rows:
            return 0
        day = delivery_day()
        bronze = self._lake.snapshots(self._spark, table="deliveries")
        rows = self._renew(bronze.where((day >= since) & (day < until)))
        self._make_gold()
        return rows

    def _renew(self, new: DataFrame) -> int:
        """Makes silver again for the days of these rows of bronze. Returns how many there are."""
        found = new.groupBy(F.date_format(delivery_day(), "yyyy-MM-dd").alias("day")).agg(F.count("*").alias("rows"))
        counts = {row["day"]: row["rows"] for row in found.collect()}
        if counts:
            old = self._lake.table(self._spark, "silver/deliveries", list(counts))
            known = old.withColumn("malformed", F.lit(None).cast("string")).drop("day")
            self._publish("silver/deliveries", silver_deliveries(known.unionByName(new.drop("run"))), list(counts))
        return sum(counts.values())

    def _make_gold(self) -> None:
        bronze = {table: self._lake.snapshots(self._spark, table=table) for table in _READ}
        settled = gold_campaigns.settled(self._lake.table(self._spark, "silver/deliveries")).persist()
        try:
            self._publish("gold/campaign_hourly", gold_campaigns.campaign_hourly(settled))
            self._publish("gold/campaign_daily", gold_campaigns.campaign_daily(settled))
            self._publish("gold/channel_health", gold_campaigns.channel_health(settled, bronze["channels"]))
        finally:
            settled.unpersist()
        self._publish("quarantine_campaigns", quarantine(*bronze.items()))

    def _publish(self, name: str, rows: DataFrame, replacing: Collection[str] | None = None) -> None:
        self._lake.publish(self._lake.stage(name, rows, self._run), replacing)
