"""Ingests a campaigns' database into bronze: campaigns and channels as they are now, deliveries that have changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobwire.pipeline.history.snapshots import seen, since_last_snapshot
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.stores.campaigns.address import database_name, settings_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class CampaignSource:
    """The database at a URL, whose name in the tables is `store`."""

    url: str
    store: str

    @property
    def name(self) -> str:
        return self.store

    def look(self) -> str:
        """Returns a text that differs after every change of a row that is read."""
        from jobwire.pipeline.stores.campaigns.tables import campaign_tables  # noqa: PLC0415 needs the driver

        with campaign_tables(self.url, self.store) as tables:
            return tables.look()

    def events_stream(self, spark: SparkSession, lake: Lake, max_rows: int) -> None:
        """Returns None: the database keeps no events."""

    def take_snapshot(self, spark: SparkSession, lake: Lake, run: str) -> int:
        """Reads campaigns, channels, deliveries of running campaigns that are not settled, and those settled since the
        last snapshot. Returns the number of deliveries."""
        with since_last_snapshot(lake, self.name, "changed_from") as (now, since):

            def read(table: str, **options: str) -> DataFrame:
                source = spark.read.format("jobwire").options(url=self.url, store=self.store, table=table, **options)
                return seen(source.load(), now, run)

            for table in ("campaigns", "channels"):
                lake.replace_snapshot(self.name, read(table), run, table)
            return lake.add_snapshot(self.name, read("deliveries", **since), run, "deliveries")


def find_database(url: str) -> CampaignSource:
    """Returns the database at a URL. Refuses one without campaign tables."""
    settings_of(url)
    from jobwire.pipeline.stores.campaigns.tables import campaign_tables  # noqa: PLC0415 needs the driver

    source = CampaignSource(url, database_name(url))
    with campaign_tables(url, source.store):
        return source
