"""Builds silver from bronze and gold from silver, for what is new since the last build.

* Events: every day that got new events is made again from all of its bronze rows.
* Jobs and runs: those that a new event or snapshot concerns are made again from all that is known of them, and replace
  their old rows. So late data changes the day that it belongs to, and nothing depends on the order in which data came:
  an incremental build and one from scratch give the same rows.
* Gold is made again from silver.

* Tables of campaigns are made by build_campaigns.py, if a campaigns' database was ingested.

What was built up to is recorded last. A build that was interrupted leaves whole tables, and the next one does the same
work again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date, timedelta
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.history import gold, quality
from jobwire.pipeline.history.build_campaigns import CampaignBuild
from jobwire.pipeline.history.silver_attempts import attempts
from jobwire.pipeline.history.silver_events import silver_events
from jobwire.pipeline.history.silver_jobs import silver_jobs
from jobwire.pipeline.lake.lake import BY_DAY, IN_ONE, Lake
from jobwire.pipeline.lake.run_log import Run
from jobwire.pipeline.lake.tables import CAMPAIGNS_IN_ONE, DELIVERIES_BY_DAY
from jobwire.pipeline.spark.session import interpreted
from jobwire.pipeline.spark.utc import utc_day

_MARKS = "checkpoints/build.json"
_AT_A_TIME = 3
_LITTLE = 1_000_000
"""Rows of bronze."""
_KEY = ["store", "queue", "id"]
_RUN_KEY = ["store", "queue", "job_id"]


@dataclass(frozen=True)
class BuildResult:
    """The result of a build. `days` are those whose events were made again. The other fields describe the tables as
    they are now."""

    run: str
    days: tuple[str, ...]
    rows_in: int
    rows: Mapping[str, int]
    checksums: Mapping[str, int]


def build(spark: SparkSession, lake: Lake, since: date | None = None, until: date | None = None) -> BuildResult:
    """Builds what is new; with `since` or `until`, everything of the days in [since, until) instead."""
    with lake.files.locked("build"), lake.run("build", since=_text(since), until=_text(until)) as run:
        work, campaigns = _Build(spark, lake, run), CampaignBuild(spark, lake, run.id)
        # In a lake of campaigns alone, a dozen empty tables would take longer than all the others.
        with_queues = work.has_rows or not campaigns.has_rows
        little = work.is_little and campaigns.rows_in_bronze < _LITTLE
        with interpreted(spark) if little else nullcontext():
            if since is None and until is None:
                if with_queues:
                    work.all_new()
                more = campaigns.all_new()
            else:
                first, end = since or date.min, until or date.max
                if with_queues:
                    work.of_days(first, end)
                more = campaigns.of_days(first, end)
        result = work.result(more)
        run.rows_in, run.rows_out = result.rows_in, sum(result.rows.values())
        run.note(checksums={name: str(value) for name, value in result.checksums.items()}, days=list(result.days))
        return result


class _Build:
    """One build. Bronze is what it was when the build began, whatever is ingested meanwhile."""

    def __init__(self, spark: SparkSession, lake: Lake, run: Run) -> None:
        self._spark = spark
        self._lake = lake
        self._run = run
        self._before: dict[str, Any] = lake.files.read(_MARKS) or {"events": {}, "snapshots": {}}
        self._generations = lake.snapshot_generations()
        self._snapshots = lake.snapshots(spark)
        self._events, self._marks = self._fixed_events()
        self._days: list[str] = []
        self._in_bronze = self._events.count() + self._snapshots.count()
        self._rows_in = 0

    @property
    def has_rows(self) -> bool:
        return self._in_bronze > 0

    @property
    def is_little(self) -> bool:
        """Returns True if compiling the queries of a build would take longer than it saves."""
        return self._in_bronze < _LITTLE

    def all_new(self) -> None:
        """Builds what came since the last build, and everything if there was none."""
        if self._before["events"] or self._before["snapshots"]:
            events = self._since_marks(self._events)
            self._renew(events, self._lake.snapshots(self._spark, after=self._before["snapshots"]))
            if self._rows_in == 0:
                return
        else:
            self._make_all()
        self._make_gold()
        marks = {"events": self._marks, "snapshots": self._generations}
        self._lake.files.write(_MARKS, marks)
        self._run.offsets.update(marks)

    def of_days(self, first: date, end: date) -> None:
        """Builds the days in [first, end) again. What was built up to does not change, so that rows which came since
        then stay new for the next build."""
        of_job = utc_day(F.coalesce("created_at", "seen_at"))
        self._renew(
            self._events.where((F.col("day") >= first) & (F.col("day") < end)),
            self._snapshots.where((of_job >= first) & (of_job < end)),
        )
        self._make_gold()

    def _make_all(self) -> None:
        self._publish("silver/events", silver_events(self._events))
        events = self._table("silver/events")
        self._days = _days(events)
        self._publish("silver/jobs", silver_jobs(self._snapshots, events))
        self._publish("silver/attempts", attempts(events, self._table("silver/jobs")))
        self._rows_in = self._in_bronze

    def _renew(self, events: DataFrame, snapshots: DataFrame) -> None:
        """Makes again all rows that the given rows of bronze concern."""
        touched = (
            events.where("job_id is not null")
            .select("store", "queue", F.col("job_id").alias("id"))
            .union(snapshots.select(*_KEY))
            .distinct()
            .persist()
        )
        try:
            self._rows_in = events.count() + snapshots.count()
            if self._rows_in == 0:
                return
            days = _days(events)
            if days:
                of_days = self._events.where(F.date_format("day", "yyyy-MM-dd").isin(*days))
                self._publish("silver/events", silver_events(of_days), days)
            self._days = days
            if not touched.isEmpty():
                self._renew_jobs(touched, days)
        finally:
            touched.unpersist()

    def _renew_jobs(self, touched: DataFrame, days: list[str]) -> None:
        old_jobs, old_runs = self._table("silver/jobs"), self._table("silver/attempts")
        of_run = touched.withColumnRenamed("id", "job_id")
        seen = self._snapshots.join(touched, _KEY, "left_semi")
        job_days = _days(old_jobs.join(touched, _KEY, "left_semi"))
        begun = _days(seen.withColumn("day", utc_day(F.coalesce("created_at", "seen_at"))))
        # No event of a job is older than the job, except by the difference of two clocks.
        from_day = _day_before(min([*days, *job_days, *begun], default="1970-01-01"))
        events = self._table("silver/events", from_day).join(of_run, _RUN_KEY, "left_semi").persist()
        jobs = silver_jobs(seen, events).persist()
        runs = attempts(events, jobs).persist()
        try:
            run_days = [day for day in _days(old_runs.join(of_run, _RUN_KEY, "left_semi")) if day >= from_day]
            for name, new, key, old_days in (
                ("silver/jobs", jobs, touched, job_days),
                ("silver/attempts", runs, of_run, run_days),
            ):
                affected = sorted({*old_days, *_days(new)})
                others = self._lake.table(self._spark, name, affected).join(key, key.columns, "left_anti")
                self._publish(name, others.select(*new.columns).unionByName(new), affected)
        finally:
            for frame in (events, jobs, runs):
                frame.unpersist()

    def _make_gold(self) -> None:
        events, jobs, runs = (self._table(name) for name in BY_DAY)
        self._publish("quarantine", quality.quarantine(self._events, self._snapshots))
        tables = {
            "gold/throughput_hourly": gold.throughput_hourly(jobs, runs),
            "gold/latency_hourly": gold.latency_hourly(runs),
            "gold/failures_daily": gold.failures_daily(runs),
            "gold/workers_hourly": gold.workers_hourly(runs),
            "gold/retries": gold.retries(jobs),
            "gold/gaps": quality.gaps(events),
            "gold/quality": quality.checks(self._events, events, jobs, runs, self._table("quarantine")),
        }
        # Small tables are mostly waiting for Spark to plan them: several at a time fill its cores.
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            for published in [pool.submit(self._publish, name, rows) for name, rows in tables.items()]:
                published.result()

    def _fixed_events(self) -> tuple[DataFrame, dict[str, int]]:
        """Returns the bronze events of this moment, and for each source the time of its newest ingest in microseconds.

        The ingests of a source follow one another, so what comes after this moment has a later time.
        """
        events = self._lake.bronze_events(self._spark)
        newest = self._since_marks(events).groupBy("source").agg(F.max(F.unix_micros("ingested_at")).alias("mark"))
        marks = {**self._before["events"], **{row["source"]: row["mark"] for row in newest.collect()}}
        known = [(F.col("source") == source) & (F.col("ingested_at") <= _time(mark)) for source, mark in marks.items()]
        return events.where(reduce(or_, known, F.lit(False))), marks

    def _since_marks(self, events: DataFrame) -> DataFrame:
        source, ingested = F.col("source"), F.col("ingested_at")
        new = [(source != name) | (ingested > _time(mark)) for name, mark in self._before["events"].items()]
        return events.where(reduce(and_, new, F.lit(True)))

    def _table(self, name: str, from_day: str = "") -> DataFrame:
        pointer = self._lake.pointer(name)
        days = None if pointer is None or not from_day else [day for day in pointer.parts if day >= from_day]
        return self._lake.table(self._spark, name, days)

    def _publish(self, name: str, rows: DataFrame, replacing: Collection[str] | None = None) -> None:
        self._lake.publish(self._lake.stage(name, rows, self._run.id), replacing)

    def result(self, more_rows: int) -> BuildResult:
        """Returns the result, with the number of rows that were read for the tables of campaigns."""
        names = (*BY_DAY, *IN_ONE, *DELIVERIES_BY_DAY, *CAMPAIGNS_IN_ONE)
        pointers = {name: self._lake.pointer(name) for name in names}
        published = {name: pointer for name, pointer in pointers.items() if pointer is not None}
        return BuildResult(
            self._run.id,
            tuple(self._days),
            self._rows_in + more_rows,
            {name: pointer.rows for name, pointer in published.items()},
            {name: pointer.checksum for name, pointer in published.items()},
        )


def _time(micros: int) -> Column:
    return F.timestamp_micros(F.lit(micros))


def _days(rows: DataFrame) -> list[str]:
    """Returns the days of the rows, sorted, in the form in which parts of a table are named."""
    found = rows.select(F.date_format("day", "yyyy-MM-dd").alias("day")).distinct().collect()
    return sorted(row["day"] for row in found if row["day"] is not None)


def _day_before(day: str) -> str:
    return (date.fromisoformat(day) - timedelta(days=1)).isoformat()


def _text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
