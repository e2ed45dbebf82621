"""The stores that are ingested, each with the queues that are wanted of it.

A store that does not answer when the sources are listed is a source all the same: its ingest fails, and the others
continue.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from jobwire import urls
from jobwire.campaigns.addresses import is_database
from jobwire.embedded.errors import EmbeddedFailed
from jobwire.errors import InvalidOption, StoreRefused, StoreUnavailable
from jobwire.pipeline.history.campaign_source import CampaignSource, find_database
from jobwire.pipeline.history.snapshots import AnySource, seen, since_last_snapshot
from jobwire.pipeline.lake import run_log
from jobwire.pipeline.lake.lake import Lake, folder_of
from jobwire.pipeline.lake.tables import EVENTS
from jobwire.pipeline.privacy.rules import EVERYTHING_KEPT, Privacy
from jobwire.pipeline.spark.utc import utc_day
from jobwire.pipeline.stores.address import reached, store_name
from jobwire.pipeline.stores.boundary import list_queues, look
from jobwire.pipeline.stores.campaigns.address import database_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FAILURES = (StoreUnavailable, StoreRefused, EmbeddedFailed)
"""Errors of one store alone."""


@dataclass(frozen=True)
class Source:
    """A store of queues. `url` is the one by which Spark's processes reach it, `store` its name in the tables, `queues`
    those that are wanted. None: all of them, including those that are created later. `parts` is about the number of
    partitions to read in."""

    url: str
    store: str
    queues: tuple[str, ...] | None = None
    parts: int | None = None
    privacy: Privacy = EVERYTHING_KEPT

    @property
    def name(self) -> str:
        """Returns a name that is the same for the same queues of the same store. Their snapshots continue by it."""
        return self.store if self.queues is None else f"{self.store} {json.dumps(sorted(self.queues))}"

    @property
    def options(self) -> dict[str, str]:
        chosen = {} if self.queues is None else {"queues": json.dumps(self.queues)}
        parts = {} if self.parts is None else {"parts": str(self.parts)}
        return {"url": self.url, "store": self.store, **chosen, **parts, **self.privacy.options}

    def look(self) -> str:
        """Returns a text that differs once a job was added, was removed or changed its state."""
        with reached(self.url) as url:
            address = urls.parse(url)
            return look(address, list_queues(address) if self.queues is None else self.queues)

    def events_stream(self, spark: SparkSession, lake: Lake, max_rows: int) -> DataStreamWriter:
        stream = (
            spark.readStream.format("jobwire")
            .options(
                **self.options, table="events", max_rows=str(max_rows), begin=json.dumps(begin_of(lake, self.store))
            )
            .load()
            .withColumn("ingested_at", F.current_timestamp())
            .withColumn("day", utc_day(F.coalesce("at", "ingested_at")))
        )
        # One stream for all selections of the store's queues: each continues where its queues were read up to.
        return lake.events_writer(stream, self.store)

    def take_snapshot(self, spark: SparkSession, lake: Lake, run: str) -> int:
        """Reads the jobs that have not finished, and those that have finished since the last snapshot."""
        with since_last_snapshot(lake, self.name, "finished_from") as (now, since):
            jobs: DataFrame = spark.read.format("jobwire").options(**self.options, **since).load()
            return lake.add_snapshot(self.name, seen(jobs, now, run), run, at=now)


def begin_of(lake: Lake, store: str) -> dict[str, Any]:
    """Returns the offsets, by queue, at which the stream of a store begins if it has none in the lake yet. Older
    releases had a stream for each selection of queues: what those have read is not read again, and does not
    become a gap if it was trimmed since."""
    if folder_of(store) in lake.files.folders(EVENTS):
        return {}
    found: dict[str, Any] = {}
    for run in run_log.rows(lake.files):
        found |= json.loads(run["offsets"]).get(store) or {}
    return found


@dataclass(frozen=True)
class UnlistedSource:
    """A store that did not answer when its queues were asked for. It is asked again with every use."""

    url: str
    store: str
    queues: tuple[str, ...]
    parts: int | None = None
    privacy: Privacy = EVERYTHING_KEPT

    @property
    def name(self) -> str:
        return f"{self.store} {json.dumps(sorted(self.queues))}"

    def look(self) -> str:
        return self._listed().look()

    def events_stream(self, spark: SparkSession, lake: Lake, max_rows: int) -> DataStreamWriter:
        return self._listed().events_stream(spark, lake, max_rows)

    def take_snapshot(self, spark: SparkSession, lake: Lake, run: str) -> int:
        return self._listed().take_snapshot(spark, lake, run)

    def _listed(self) -> Source:
        with reached(self.url) as url:
            names = list_queues(urls.parse(url))
        found = tuple(name for name in names if name in self.queues)
        if not found:
            raise InvalidOption("queue", min(self.queues), f"is not in {self.store}")
        return Source(self.url, self.store, found, self.parts, self.privacy)


def find_sources(
    stack: ExitStack,
    stores: Sequence[str],
    queues: Collection[str] | None = None,
    *,
    privacy: Privacy = EVERYTHING_KEPT,
    parts: int | None = None,
) -> list[AnySource]:
    """Returns the stores with all of their queues, or with those of the given names. A plain PostgreSQL URL is that of
    a campaigns' database. Embedded servers run until the stack is closed. The rules of `privacy` are applied to all
    that is read from queues.

    Raises the error of a store that fails if it is the only one. Of several, it is a source whose ingest fails.
    """
    found: list[AnySource] = []
    missing = set(queues or ())
    finding = _Finding(queues, parts, privacy)
    for store in stores:
        try:
            source = find_database(store) if is_database(store) else finding.source(stack, store)
        except FAILURES:
            if len(stores) == 1:
                raise
            found.append(finding.failing(store))
            missing.clear()  # this store may have them
            continue
        if isinstance(source, Source):
            missing -= set(source.queues or ())
        if source is not None:
            found.append(source)
    if missing:
        rule = f"is in none of the stores: {', '.join(store_name(store) for store in stores if not is_database(store))}"
        raise InvalidOption("queue", min(missing), rule)
    return found


@dataclass(frozen=True)
class _Finding:
    queues: Collection[str] | None
    parts: int | None
    privacy: Privacy

    def source(self, stack: ExitStack, store: str) -> Source | None:
        url = stack.enter_context(reached(store))
        names = list_queues(urls.parse(url))
        if not self.queues:
            return Source(url, store_name(store), None, self.parts, self.privacy)
        chosen = tuple(name for name in names if name in self.queues)
        return Source(url, store_name(store), chosen, self.parts, self.privacy) if chosen else None

    def failing(self, store: str) -> AnySource:
        if is_database(store):
            return CampaignSource(store, database_name(store))
        if not self.queues:
            return Source(store, store_name(store), None, self.parts, self.privacy)
        return UnlistedSource(store, store_name(store), tuple(self.queues), self.parts, self.privacy)
