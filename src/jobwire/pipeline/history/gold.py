"""Silver into gold: small tables that answer questions, per store, queue and name.

`campaign_daily` and `channel_health` are made by gold_campaigns.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.history import latency_sketch as sketch
from jobwire.pipeline.history.silver_events import job_name, reusing_ids
from jobwire.pipeline.lake.schemas import (
    FAILURES_DAILY,
    LATENCY_HOURLY,
    RETRIES,
    TALLIES,
    THROUGHPUT_HOURLY,
    WORKERS_HOURLY,
)
from jobwire.pipeline.spark.utc import HOUR_MS, hours_since_epoch, ms_between, utc_day, utc_hour

_KIND_OF_JOB = ("store", "queue", "name")
_FINISHED, _SUCCEEDED = "finished jobs", "jobs that succeeded"
_COUNTS = THROUGHPUT_HOURLY.names[4:]
_LEVELS = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


def throughput_hourly(jobs: DataFrame, attempts: DataFrame, events: DataFrame) -> DataFrame:
    """Returns what happened in each hour: jobs added and failed for good, runs started, completed, stalled, started
    again.

    A row of `jobs` is the newest job of its id, as it is now. So where ids are used again, jobs are counted by the
    events of their adding, and by themselves only if there is no such event. A job that was retried by hand after it
    had failed for good has failed all the same, with an earlier run.
    """
    started, ended, outcome = F.col("started_at"), F.col("ended_at"), F.col("outcome")
    unreported = ~reusing_ids() | ~F.coalesce("adding_reported", F.lit(True))
    of_jobs = {"added": F.when(unreported, F.col("created_at"))}
    adding = events.where((F.col("kind") == "added") & reusing_ids())
    of_events = {"added": F.col("happened_at")}
    of_runs = {
        "failed": F.when(F.col("gave_up"), F.coalesce(ended, started)),
        "started": started,
        "retried": F.when(F.col("attempt") > 1, started),
        "completed": F.when(outcome == "completed", ended),
        "stalled": F.when(outcome == "stalled", F.coalesce(ended, started)),
    }
    happened = (
        _moments(jobs, of_jobs)
        .unionByName(_moments(adding.withColumn("name", job_name()), of_events))
        .unionByName(_moments(attempts, of_runs))
        .where("at is not null")
    )
    return (
        happened.groupBy(*_KIND_OF_JOB, utc_hour(F.col("at")).alias("hour"))
        .agg(*(F.count_if(F.col("what") == name).alias(name) for name in _COUNTS))
        .select(*THROUGHPUT_HOURLY.names)
    )


def _moments(rows: DataFrame, moments: Mapping[str, Column]) -> DataFrame:
    """Returns a row `what, at` for each of the moments of a row."""
    pairs = [F.struct(F.lit(what).alias("what"), at.alias("at")) for what, at in moments.items()]
    return rows.select(*_KIND_OF_JOB, F.inline(F.array(*pairs)))


def latency_hourly(attempts: DataFrame) -> DataFrame:
    """Returns how long runs waited and took, by the hour in which they started. Open runs count with their wait."""
    none = F.lit(None).cast("int")
    measures = {
        "runs": none,
        "wait": sketch.bucket(F.col("wait_ms")),
        "run": sketch.bucket(F.col("run_ms")),
    }
    measured = attempts.where("started_at is not null").select(
        *_KIND_OF_JOB,
        utc_hour(F.col("started_at")).alias("hour"),
        F.inline(
            F.array(*(F.struct(F.lit(name).alias("measure"), of.alias("bucket")) for name, of in measures.items()))
        ),
    )
    return _percentiles(measured.groupBy(*_KIND_OF_JOB, "hour", "measure", "bucket").agg(F.count("*").alias("count")))


def merge_latency(latency: DataFrame, grain: Literal["day", "all"]) -> DataFrame:
    """Merges rows of `latency_hourly` into days, or into one row; `hour` is then the first hour of the period."""
    day_begins = F.timestamp_seconds(F.unix_date(utc_day(F.col("hour"))) * 86_400)
    stretch = day_begins if grain == "day" else F.min("hour").over(Window.partitionBy(*_KIND_OF_JOB))
    rows = latency.withColumn("hour", stretch)
    of_stretch = (*_KIND_OF_JOB, "hour")
    counted = rows.select(*of_stretch, F.lit("runs").alias("measure"), F.lit(None).cast("int").alias("bucket"), "runs")
    for measure in ("wait", "run"):
        bars = F.inline(sketch.entries(F.col(f"{measure}_sketch")))
        counted = counted.union(rows.select(*of_stretch, F.lit(measure).alias("measure"), bars))
    return _percentiles(counted.groupBy(*of_stretch, "measure", "bucket").agg(F.sum("runs").alias("count")))


def _percentiles(counted: DataFrame) -> DataFrame:
    """Computes percentiles. `counted` has the number of runs in each bucket of each measure; `runs` has no buckets."""
    measure, bucket = F.col("measure"), F.col("bucket")
    wide = counted.groupBy(*_KIND_OF_JOB, "hour").agg(
        F.sum(F.when(measure == "runs", F.col("count"))).alias("runs"),
        *(
            sketch.bars(F.when(measure == name, bucket), F.col("count")).alias(f"{name}_bars")
            for name in ("wait", "run")
        ),
        *(
            F.sum(F.when((measure == name) & bucket.isNotNull(), F.col("count"))).alias(f"{name}_total")
            for name in ("wait", "run")
        ),
    )
    figures = {
        f"{name}_{level}": sketch.percentile(F.col(f"{name}_bars"), F.col(f"{name}_total"), share)
        for name in ("wait", "run")
        for level, share in _LEVELS.items()
    }
    sketches = {f"{name}_sketch": sketch.sketch(F.col(f"{name}_bars")) for name in ("wait", "run")}
    return wide.withColumns(figures | sketches).select(*LATENCY_HOURLY.names)


def failures_daily(attempts: DataFrame) -> DataFrame:
    """Returns failed and stalled runs by class of error, on the day of their end, or of their start if the end is
    unknown."""
    moment = F.coalesce("ended_at", "started_at")
    error_class = F.coalesce("error_class", F.when(F.col("outcome") == "stalled", "stalled"), F.lit("(no error told)"))
    return (
        attempts.where("outcome in ('failed', 'stalled')")
        .select(*_KIND_OF_JOB, "job_id", "attempt", "error", moment.alias("at"), error_class.alias("error_class"))
        .groupBy(*_KIND_OF_JOB, utc_day(F.col("at")).alias("day"), "error_class")
        .agg(
            F.count("*").alias("failures"),
            F.count_distinct("job_id").alias("jobs"),
            F.min_by("error", F.struct("at", "job_id", "attempt")).alias("sample_error"),
            F.min("at").alias("first_at"),
            F.max("at").alias("last_at"),
        )
        .select(*FAILURES_DAILY.names)
    )


def workers_hourly(attempts: DataFrame) -> DataFrame:
    """Returns how busy each worker was in each hour. A run that spans hours counts in each with its part.

    Utilisation is measured against one job at a time: a worker that runs four at once may reach 4. A run whose worker
    is not known counts for the worker null. A stalled run counts without its time, of which the end is not known.
    """
    started, ended = F.col("started_at"), F.col("ended_at")
    # A run that ends exactly on the hour does not touch the next hour.
    last_moment = F.timestamp_micros(F.greatest(F.unix_micros(started), F.unix_micros(ended) - 1))
    begins = F.timestamp_seconds(F.col("number") * 3600)
    ends = F.timestamp_seconds((F.col("number") + 1) * 3600)
    return (
        attempts.where("started_at is not null and ended_at >= started_at")
        .withColumn("ended_at", F.when(F.col("outcome") == "stalled", started).otherwise(ended))
        .select(
            "store",
            "queue",
            "worker",
            started,
            ended,
            F.explode(F.sequence(hours_since_epoch(started), hours_since_epoch(last_moment))).alias("number"),
        )
        .groupBy("store", "queue", "worker", begins.alias("hour"))
        .agg(
            F.count("*").alias("runs"),
            F.sum(ms_between(F.greatest(started, begins), F.least(ended, ends))).alias("busy_ms"),
        )
        .withColumn("utilisation", F.col("busy_ms") / HOUR_MS)
        .select(*WORKERS_HOURLY.names)
    )


def run_tallies(jobs: DataFrame) -> DataFrame:
    """Returns the counts of each day that `retries` is a sum of, in columns of TALLIES: how many runs finished jobs
    took, and how many of them succeeded."""
    return (
        jobs.where("state in ('completed', 'failed')")
        .groupBy(*_KIND_OF_JOB, "day", F.greatest(F.lit(1), "attempts_made").alias("number"))
        .agg(F.count("*").alias(_FINISHED), F.count_if(F.col("state") == "completed").alias(_SUCCEEDED))
        .unpivot([*_KIND_OF_JOB, "day", "number"], [_FINISHED, _SUCCEEDED], "tally", "value")
        .select(*TALLIES.names)
    )


def retries(tallies: DataFrame) -> DataFrame:
    """Returns how many runs finished jobs took, and how many of them succeeded, from the tallies of all days: rows
    beyond one run are the gain of retries."""
    of_kind = Window.partitionBy(*_KIND_OF_JOB)

    def total(tally: str) -> Column:
        return F.sum(F.when(F.col("tally") == tally, F.col("value")))

    return (
        tallies.where(F.col("tally").isin(_FINISHED, _SUCCEEDED))
        .groupBy(*_KIND_OF_JOB, F.col("number").alias("attempts"))
        .agg(total(_FINISHED).alias("jobs"), total(_SUCCEEDED).alias("succeeded"))
        .withColumn("share", F.try_divide("succeeded", F.sum("succeeded").over(of_kind)))
        .select(*RETRIES.names)
    )
