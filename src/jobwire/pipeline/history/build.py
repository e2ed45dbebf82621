"""Builds silver from bronze and gold from silver, for what is new since the last build.

* Events: every day that got new events is made again from all of its bronze rows.
* Jobs and runs: those that a new event or snapshot concerns are made again from all that is known of them, and replace
  their old rows. So late data changes the day that it belongs to, and nothing depends on the order in which data came:
  an incremental build and one from scratch give the same rows.
* Gold is made again from silver: hourly and daily tables for the days on which something has changed, others whole.

* Tables of campaigns are made by build_campaigns.py, if a campaigns' database was ingested.

What was built up to is recorded last. A build that was interrupted leaves whole tables, and the next one does the same
work again. If nothing was ingested since the last build, there is nothing to do, and Spark is not used. Tables with the
columns of another release are made again whole.

Rows of bronze may have expired (tidy.py). Silver is the only record of them: events of such days are added to those of
silver, and a job of which bronze has no snapshot left stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from jobwire.errors import JobwireError
from jobwire.pipeline.history import gold, quality
from jobwire.pipeline.history.bronze_input import BronzeInput, day_before
from jobwire.pipeline.history.build_campaigns import CampaignBuild
from jobwire.pipeline.history.gold_changes import GoldChanges
from jobwire.pipeline.history.marks import BUILT, MARKS, expired_before
from jobwire.pipeline.history.silver_attempts import attempts
from jobwire.pipeline.history.silver_events import silver_events
from jobwire.pipeline.history.silver_jobs import silver_jobs
from jobwire.pipeline.lake.lake import BY_DAY, SUMMARIES, Lake
from jobwire.pipeline.lake.run_log import Run
from jobwire.pipeline.lake.tables import (
    CAMPAIGNS_IN_ONE,
    DELIVERIES_BY_DAY,
    GOLD_BY_DAY,
    TALLIES_DAILY,
    columns_of,
)
from jobwire.pipeline.spark.session import for_little, for_much, session_of
from jobwire.pipeline.spark.utc import utc_day

if TYPE_CHECKING:
    from jobwire.pipeline.spark.session import AnySession

_AT_A_TIME = 3
_LITTLE = 1_000_000
"""Rows for which compiling the queries of a build takes longer than it saves."""
_FEW = 500_000
"""Rows of bronze whose keys fit in the memory of every task."""
_FEW_DAYS = 7
"""Days of events that are read whole without a look at which of them are needed."""
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


def build(spark: AnySession, lake: Lake, since: date | None = None, until: date | None = None) -> BuildResult:
    """Builds what is new; with `since` or `until`, everything of the days in [since, until) instead."""
    with lake.files.locked("build"), lake.run("build", since=_text(since), until=_text(until)) as run:
        bronze = lake.bronze_state()
        if since is None and until is None:
            if lake.files.read(BUILT) == bronze and _has_present_columns(lake):
                run.note(unchanged=True)
                return _result(lake, run, (), 0)
            result = _build(session_of(spark), lake, run)
            lake.files.write(BUILT, bronze)
            return result
        return _build(session_of(spark), lake, run, (since or date.min, until or date.max))


def _build(spark: SparkSession, lake: Lake, run: Run, days: tuple[date, date] | None = None) -> BuildResult:
    """Builds what is new, or all of the days from the first to before the second."""
    work, campaigns = _Build(spark, lake, run), CampaignBuild(spark, lake, run.id)
    # In a lake of campaigns alone, a dozen empty tables would take longer than all the others.
    with_queues = work.has_rows or not campaigns.has_rows
    rows = work.rows_to_read(what_is_new=days is None) + campaigns.rows_in_bronze
    with for_little(spark, rows) if rows < _LITTLE else nullcontext():
        if days is None:
            if with_queues:
                work.all_new()
            more = campaigns.all_new()
        else:
            if with_queues:
                work.of_days(*days)
            more = campaigns.of_days(*days)
    return _result(lake, run, work.days, work.rows_in + more)


def _result(lake: Lake, run: Run, days: Sequence[str], rows_in: int) -> BuildResult:
    """Returns the result of a build with the tables as they are now, and records it."""
    names = (*BY_DAY, *SUMMARIES, *DELIVERIES_BY_DAY, *CAMPAIGNS_IN_ONE)
    pointers = {name: lake.pointer(name) for name in names}
    published = {name: pointer for name, pointer in pointers.items() if pointer is not None}
    rows = {name: pointer.rows for name, pointer in published.items()}
    checksums = {name: pointer.checksum for name, pointer in published.items()}
    run.rows_in, run.rows_out = rows_in, sum(rows.values())
    run.note(checksums={name: str(value) for name, value in checksums.items()}, days=list(days))
    return BuildResult(run.id, tuple(days), rows_in, rows, checksums)


@dataclass(frozen=True)
class _OldDays:
    """Days of rows of silver/jobs: their own, those on which the jobs were last seen, and the own days of jobs without
    a time of creation."""

    jobs: Collection[str]
    seen: Collection[str]
    undated: Collection[str]


class _Build:
    """One build. Bronze is what it was when the build began, whatever is ingested meanwhile."""

    def __init__(self, spark: SparkSession, lake: Lake, run: Run) -> None:
        self._spark = spark
        self._lake = lake
        self._run = run
        self._bronze = BronzeInput(spark, lake)
        self._expired = expired_before(lake)
        self.days: list[str] = []
        self.rows_in = 0

    @property
    def has_rows(self) -> bool:
        return bool(self._bronze.marks["events"]) or self._lake.snapshot_rows() > 0

    def rows_to_read(self, *, what_is_new: bool) -> int:
        """Returns about how many rows the build reads: new ones in bronze, and silver of their days, or all of silver
        unless it goes on from the last build with what is new."""
        pointers = [self._lake.pointer(name) for name in BY_DAY]
        parts = [item for pointer in pointers if pointer is not None for item in pointer.parts.items()]
        some = what_is_new and self._goes_on
        days = self._bronze.new_days
        return self._bronze.new_rows + sum(part.rows for day, part in parts if not some or day in days)

    @property
    def _goes_on(self) -> bool:
        """Returns whether there was a build before whose tables can be gone on with."""
        if self._expired is not None:
            return True
        return self._bronze.was_built and _has_present_columns(self._lake)

    def all_new(self) -> None:
        """Builds what came since the last build, and everything if there was none."""
        self.rows_in = self._bronze.new_rows
        fits = _has_present_columns(self._lake)
        if not fits and self._expired is not None:
            self._keep_silver()
        if not self._goes_on:
            self._make_all()
        else:
            events, snapshots = self._bronze.new_events, self._bronze.new_snapshots()
            if self._bronze.new_rows:
                self._renew(events, snapshots, self._bronze.new_days)
            if self._bronze.new_rows or not fits or GoldChanges(self._lake).days != []:
                self._make_gold(events, snapshots)
        self._lake.files.write(MARKS, self._bronze.marks)
        self._run.offsets.update(self._bronze.marks)

    def of_days(self, first: date, end: date) -> None:
        """Builds the days in [first, end) again. What was built up to does not change, so that rows which came since
        then stay new for the next build."""
        of_job = utc_day(F.coalesce("created_at", "seen_at"))
        events = self._bronze.events().where((F.col("day") >= first) & (F.col("day") < end))
        snapshots = self._bronze.snapshots().where((of_job >= first) & (of_job < end))
        self.rows_in = events.count() + snapshots.count()
        self._renew(events, snapshots, _days(events=events)["events"])
        self._make_gold(events, snapshots)

    def _make_all(self) -> None:
        bronze, snapshots = self._bronze.events(), self._bronze.snapshots()
        self._publish("silver/events", silver_events(bronze))
        events = self._table("silver/events")
        self._publish("silver/jobs", silver_jobs(snapshots, events))
        self._publish("silver/attempts", attempts(events, self._table("silver/jobs")))
        pointer = self._lake.pointer("silver/events")
        self.days = [] if pointer is None else sorted(pointer.parts)
        self._make_gold(bronze, snapshots)

    def _renew(self, events: DataFrame, snapshots: DataFrame, days: list[str]) -> None:
        """Makes again all rows that the given rows of bronze concern. `days` are those of the events."""
        touched = (
            events.where("job_id is not null")
            .select("store", "queue", F.col("job_id").alias("id"))
            .union(snapshots.select(*_KEY))
            .distinct()
        )
        if self._expired is not None:
            touched = touched.join(self._known_to_silver_alone(self._expired), _KEY, "left_anti")
        touched = touched.persist()
        try:
            if days:
                made = silver_events(self._bronze.events(days))
                expired = [day for day in days if self._expired is not None and day < self._expired]
                if expired:
                    old = self._lake.table(self._spark, "silver/events", expired).join(made, _KEY, "left_anti")
                    made = made.unionByName(old)
                self._publish("silver/events", made, days)
            self.days = days
            # Spark can't know that they are few, and would sort all jobs of silver to find these among them.
            self._renew_jobs(F.broadcast(touched) if self.rows_in < _FEW else touched, snapshots, days)
        finally:
            touched.unpersist()

    def _known_to_silver_alone(self, expired: str) -> DataFrame:
        """Returns the keys of jobs whose snapshots have expired."""
        pointer = self._lake.pointer("silver/jobs")
        days = [] if pointer is None else [day for day in pointer.parts if day < expired]
        old = self._lake.table(self._spark, "silver/jobs", days).select(*_KEY)
        return old.join(self._bronze.snapshots(), _KEY, "left_anti")

    def _keep_silver(self) -> None:
        """Publishes silver with the columns of this release. It is the only record of rows that have expired, so it is
        not made again from bronze: columns that its events and jobs lack are null. Its runs are made from these. Gold
        is made again from silver.

        Raises JobwireError if events or jobs have columns that this release does not have.
        """
        stored = {name: self._lake.pointer(name) for name in BY_DAY}
        if all(pointer is None or pointer.columns == columns_of(name).ddl for name, pointer in stored.items()):
            return
        renewed: list[str] = []
        for name in ("silver/events", "silver/jobs"):
            pointer, present = stored[name], columns_of(name)
            if pointer is None or pointer.columns == present.ddl:
                continue
            if foreign := set(pointer.columns.split(", ")) - set(present.ddl.split(", ")):
                raise JobwireError(
                    f"{name} of the lake at {self._lake.root} has the columns of another release, such as "
                    f"{min(foreign)!r}, and can't be made again: rows before {self._expired} have expired; build with "
                    "that release, or begin another lake"
                )
            renewed.append(name)
        self._lake.files.write(BUILT, {})  # if this is interrupted, gold has yet to be made from it
        label = f"{self._run.id}-kept"  # the rest of the build stages these tables again, by the id of its run
        for name in renewed:
            self._lake.publish(self._lake.stage(name, self._table(name), label))
        runs = attempts(self._table("silver/events"), self._table("silver/jobs"))
        self._lake.publish(self._lake.stage("silver/attempts", runs, label))

    def _renew_jobs(self, touched: DataFrame, snapshots: DataFrame, days: list[str]) -> None:
        """Makes the touched jobs and their runs again. `snapshots` are the rows of bronze that touch them."""
        of_run = touched.withColumnRenamed("id", "job_id")
        old = self._old_days(touched)
        begun = _days(begun=snapshots.withColumn("day", utc_day(F.coalesce("created_at", "seen_at"))))["begun"]
        # No event of a job is older than the job, except by the difference of two clocks.
        from_day = day_before(min([*days, *old.jobs, *begun], default="1970-01-02"))
        of_events, of_runs = self._days_of(of_run, from_day)
        events = self._lake.table(self._spark, "silver/events", of_events).join(of_run, _RUN_KEY, "left_semi").persist()
        with_seen_at = _has_present_columns(self._lake)
        bronze = self._bronze.last_snapshots(old.seen, old.undated) if with_seen_at else self._bronze.snapshots()
        seen = bronze.join(touched, _KEY, "left_semi")
        jobs = silver_jobs(seen, events).persist()
        runs = attempts(events, jobs).persist()
        try:
            new = _days(jobs=jobs, runs=runs)
            for name, before, what, rows, key in (
                ("silver/jobs", old.jobs, "jobs", jobs, touched),
                ("silver/attempts", of_runs, "runs", runs, of_run),
            ):
                affected = sorted({*before, *new[what]})
                if affected:
                    others = self._lake.table(self._spark, name, affected).join(key, key.columns, "left_anti")
                    self._publish(name, others.select(*rows.columns).unionByName(rows), affected)
        finally:
            for frame in (events, jobs, runs):
                frame.unpersist()

    def _old_days(self, touched: DataFrame) -> _OldDays:
        """Returns the days of the rows that silver has of the touched jobs."""
        days = (
            self._table("silver/jobs")
            .join(touched, _KEY, "left_semi")
            .select(
                F.col("day").cast("string").alias("day"),
                utc_day(F.col("seen_at")).cast("string").alias("seen"),
                F.col("created_at").isNull().alias("undated"),
            )
            .distinct()
        )
        pointer = self._lake.pointer("silver/jobs")
        with for_much(self._spark) if pointer is not None and pointer.rows >= _LITTLE else nullcontext():
            found = days.collect()
        return _OldDays(
            jobs={row["day"] for row in found if row["day"] is not None},
            seen={row["seen"] for row in found if row["seen"] is not None},
            undated={row["day"] for row in found if row["undated"]},
        )

    def _days_of(self, jobs: DataFrame, from_day: str) -> tuple[list[str], list[str]]:
        """Returns the days from the given one on that have events of these jobs, and those that have their runs. One
        job may have waited for a year: only the keys of all the days between are read."""
        pointer = self._lake.pointer("silver/events")
        range_of_days = [] if pointer is None else [day for day in pointer.parts if day >= from_day]
        tables = {"runs": self._table("silver/attempts", from_day)}
        if len(range_of_days) > _FEW_DAYS:
            tables["events"] = self._lake.table(self._spark, "silver/events", set(range_of_days))
        found = _days(**{name: rows.join(jobs, _RUN_KEY, "left_semi") for name, rows in tables.items()})
        return found.get("events", range_of_days), found["runs"]

    def _make_gold(self, new_events: DataFrame, new_snapshots: DataFrame) -> None:
        known = self._table("quarantine")
        self._publish("quarantine", quality.quarantine(new_events, new_snapshots, known))
        changes = GoldChanges(self._lake)
        gaps = self._count_days(changes)
        tallies = self._lake.small_table(self._spark, TALLIES_DAILY)
        tables = {
            "gold/retries": gold.retries(tallies),
            "gold/gaps": gaps,
            "gold/quality": quality.checks(tallies, self._table("quarantine")),
        }
        if changes.days is None or changes.days:
            jobs = self._lake.table(self._spark, "silver/jobs", changes.parts("silver/jobs"))
            runs = self._lake.table(self._spark, "silver/attempts", changes.parts("silver/attempts"))
            events = self._lake.table(self._spark, "silver/events", changes.days)
            tables |= {
                "gold/throughput_hourly": gold.throughput_hourly(jobs, runs, events),
                "gold/latency_hourly": gold.latency_hourly(runs),
                "gold/failures_daily": gold.failures_daily(runs),
                "gold/workers_hourly": gold.workers_hourly(runs),
            }

        def publish(name: str, rows: DataFrame) -> None:
            if name in GOLD_BY_DAY and changes.days is not None:
                day = F.col("day") if GOLD_BY_DAY[name] == "day" else utc_day(F.col("hour"))
                self._publish(name, rows.where(day.cast("string").isin(*changes.days)), changes.days)
            else:
                self._publish(name, rows)

        # Small tables are mostly waiting for Spark to plan them: several at a time fill its cores.
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            for published in [pool.submit(publish, name, rows) for name, rows in tables.items()]:
                published.result()
        changes.record()

    def _count_days(self, changes: GoldChanges) -> DataFrame:
        """Counts the rows of the days of silver that have changed. Returns the gaps of all days."""
        days = changes.silver_days
        bronze, old_gaps = self._bronze.events(days), self._table("gold/gaps")
        if days is not None:
            old_gaps = old_gaps.where(~utc_day(F.col("noticed_at")).cast("string").isin(*days))
        events, jobs, runs = (self._lake.table(self._spark, name, days) for name in BY_DAY)
        if days is None or days:
            counted = quality.tallies(bronze, events, jobs, runs, expired=self._expired)
            self._publish(TALLIES_DAILY, counted.unionByName(gold.run_tallies(jobs)), days)
        new_gaps = quality.gaps(events)
        return new_gaps if days is None else old_gaps.unionByName(new_gaps)

    def _table(self, name: str, from_day: str = "") -> DataFrame:
        pointer = self._lake.pointer(name)
        days = None if pointer is None or not from_day else [day for day in pointer.parts if day >= from_day]
        return self._lake.table(self._spark, name, days)

    def _publish(self, name: str, rows: DataFrame, replacing: Collection[str] | None = None) -> None:
        self._lake.publish(self._lake.stage(name, rows, self._run.id), replacing)


def _has_present_columns(lake: Lake) -> bool:
    """Returns whether the tables of silver and gold have the columns of this release."""
    pointers = [(name, lake.pointer(name)) for name in (*BY_DAY, *SUMMARIES)]
    return all(pointer is None or pointer.columns == columns_of(name).ddl for name, pointer in pointers)


def _days(**tables: DataFrame) -> dict[str, list[str]]:
    """Returns the days of the rows of each table, sorted, in the form in which parts of a table are named. All in one
    job of Spark."""
    day = F.date_format("day", "yyyy-MM-dd").alias("day")
    named = [rows.select(F.lit(name).alias("name"), day) for name, rows in tables.items()]
    found = reduce(DataFrame.union, named).where("day is not null").distinct().collect()
    return {name: sorted(row["day"] for row in found if row["name"] == name) for name in tables}


def _text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
