"""Bronze as one build reads it: what is new since the last build, and what is needed again beside it.

A build reads bronze as it was when it began, whatever is ingested meanwhile. It reads parts by their days and
generations, so that a lake of many days costs no more than one of few.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date, timedelta
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.history.marks import BUILT, MARKS
from jobwire.pipeline.lake.lake import Lake

_NEVER = "9999-12-31"


class BronzeInput:
    """Bronze at the moment in which this object is made."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake
        self._before: dict[str, Any] = lake.files.read(MARKS) or {"events": {}, "snapshots": {}}
        generations = lake.snapshot_generations()
        self._built: Mapping[str, Any] = (lake.files.read(BUILT) or {}).get("events", {})
        self._last: Mapping[str, Any] = lake.bronze_state()["events"]
        self.new_rows = lake.snapshot_rows(self._before["snapshots"])
        self.new_days: list[str] = []
        """The days of new events."""
        events, newest = self._find_new_events()
        self.new_events = events
        self.marks: dict[str, dict[str, int]] = {"events": newest, "snapshots": generations}
        """For each source the time of its newest ingest of events, in microseconds, and the generation of its
        snapshots."""

    @property
    def was_built(self) -> bool:
        """Returns whether a build has recorded what it was made from."""
        return bool(self._before["events"] or self._before["snapshots"])

    def events(self, days: Collection[str] | None = None) -> DataFrame:
        """Returns the events of all days, or of some."""
        events = self._lake.bronze_events(self._spark, days=days, until=self._last)
        events = events.where(self._until(self.marks["events"]))
        return events if days is None else events.where(F.date_format("day", "yyyy-MM-dd").isin(*days))

    def snapshots(self) -> DataFrame:
        """Returns all snapshots."""
        return self._snapshots()

    def new_snapshots(self) -> DataFrame:
        """Returns the snapshots that no build has used."""
        return self._snapshots(self._before["snapshots"])

    def last_snapshots(self, seen: Collection[str], undated: Collection[str]) -> DataFrame:
        """Returns the snapshots from which jobs of silver are made again: new ones, and those of the days on which the
        jobs were last seen. A job without a time of creation has the day on which it was first seen, so that all
        snapshots since then are needed: `undated` are the days of such jobs."""
        since = min(undated, default=_NEVER)
        return self._snapshots(self._before["snapshots"], also=lambda day: day in seen or day >= since)

    def _snapshots(
        self, after: Mapping[str, int] | None = None, also: Callable[[str], bool] | None = None
    ) -> DataFrame:
        return self._lake.snapshots(self._spark, after, until=self.marks["snapshots"], also=also)

    def _find_new_events(self) -> tuple[DataFrame, dict[str, int]]:
        """Returns the events since the last build, and for each source the time of its newest ingest. Counts the new
        ones, and finds their days, on the way.

        New is what is in parts that were published since, whatever time it has: a clock may have been set back. In
        formats without such parts, and where no build has recorded them, it is what has a later time.
        """
        day = F.date_format("day", "yyyy-MM-dd").alias("day")
        newest = F.max(F.unix_micros("ingested_at")).alias("mark")
        new = self._since_marks(self._lake.bronze_events(self._spark, self._built, until=self._last))
        found = new.groupBy("source", day).agg(F.count("*").alias("rows"), newest).collect()
        marks: dict[str, int] = dict(self._before["events"])
        for row in found:
            marks[row["source"]] = max(row["mark"], marks.get(row["source"], 0))
        self.new_rows += sum(row["rows"] for row in found)
        self.new_days = sorted({row["day"] for row in found if row["day"] is not None})
        return new.where(self._until(marks)), marks

    def _since_marks(self, events: DataFrame) -> DataFrame:
        source, ingested = F.col("source"), F.col("ingested_at")
        marks = {
            name: mark for name, mark in self._before["events"].items() if not isinstance(self._built.get(name), int)
        }
        new = [(source != name) | (ingested > _time(mark)) for name, mark in marks.items()]
        return events.where(reduce(and_, new, F.lit(True)))

    def _until(self, marks: Mapping[str, int]) -> Column:
        """Returns whether an event was there when this object was made: by its part, or else by its time."""
        source, ingested = F.col("source"), F.col("ingested_at")
        parts = source.isin(*(name for name, last in self._last.items() if isinstance(last, int)))
        return reduce(or_, ((source == name) & (ingested <= _time(mark)) for name, mark in marks.items()), parts)


def day_before(day: str) -> str:
    """Returns the day before, in the form in which parts of a table are named."""
    return (date.fromisoformat(day) - timedelta(days=1)).isoformat()


def _time(micros: int) -> Column:
    return F.timestamp_micros(F.lit(micros))
