"""Finds what is wrong with the data: rows that can't be read, events that were lost before they were read, figures that
can't be right."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.lake.schemas import GAPS, QUALITY, QUARANTINE, TALLIES
from jobwire.pipeline.spark.utc import utc_day

FORGOTTEN = "forgotten runs"
_OF_A_QUEUE = ("store", "queue")
_HARMLESS = {
    "events": "events in silver",
    "jobs": "jobs in silver",
    "attempts": "runs in silver",
    "duplicate events": "read more than once and kept once",
    "open attempts": "runs without an end",
    "runs of unknown workers": "runs whose worker the store does not name",
}
_TO_LOOK_AT = {
    "malformed rows": "left out of silver, kept in quarantine",
    FORGOTTEN: "runs that jobs have counted and the store did not keep: nothing but their number is known",
    "gaps": "times that the store dropped events before they were read",
    "jobs of unknown beginning": "known from later events only: neither their adding nor they themselves were read",
    "finished before started": "jobs whose finish is earlier than their start: the clocks of nodes differ",
    "started before ready": "runs whose wait would be negative and is taken as 0: the clocks of nodes differ",
}


def event_flaw() -> Column:
    """Returns why a row of bronze events can't be used; null for a sound one."""
    return F.coalesce(
        F.col("malformed"),
        F.when(F.col("store").isNull() | F.col("queue").isNull(), "the event names no queue"),
        F.when(F.col("id").isNull(), "the event has no id"),
        F.when(F.col("kind").isNull() | (F.col("kind") == ""), "the event has no kind"),
        F.when(F.col("at").isNull() & (F.col("kind") != "gap"), "the event has no time"),
    )


def job_flaw() -> Column:
    """Returns why a row of the snapshots can't be used; null for a sound one."""
    return F.coalesce(
        F.col("malformed"),
        F.when(F.col("store").isNull() | F.col("queue").isNull(), "the job names no queue"),
        F.when(F.col("id").isNull(), "the job has no id"),
        F.when(F.col("state").isNull(), "the job has no state"),
    )


def quarantine(bronze_events: DataFrame, snapshots: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """Returns every row that silver leaves out, once, as it was first seen, with the reason and the whole record: those
    of the given rows of bronze, and those that are known."""
    events = bronze_events.select(
        *_OF_A_QUEUE,
        F.lit("events").alias("source"),
        "id",
        event_flaw().alias("reason"),
        F.to_json(F.struct("kind", "job_id", "at", "data")).alias("record"),
        F.col("ingested_at").alias("seen_at"),
    )
    whole_job = [name for name in snapshots.columns if name not in (*_OF_A_QUEUE, "id", "malformed", "seen_at", "run")]
    jobs = snapshots.select(
        *_OF_A_QUEUE,
        F.lit("jobs").alias("source"),
        "id",
        job_flaw().alias("reason"),
        F.to_json(F.struct(*whole_job)).alias("record"),
        "seen_at",
    )
    flawed = events.unionByName(jobs).where("reason is not null")
    return (
        (flawed if known is None else flawed.unionByName(known.drop("day")))
        .groupBy(*_OF_A_QUEUE, "source", "id", "reason")
        .agg(F.min(F.struct("seen_at", "record")).alias("first"))
        .select(
            *_OF_A_QUEUE,
            "source",
            "id",
            "reason",
            "first.record",
            "first.seen_at",
            utc_day(F.col("first.seen_at")).alias("day"),
        )
        .select(*QUARANTINE.names)
    )


def gaps(events: DataFrame) -> DataFrame:
    """Returns the ranges of events that a store dropped before they were read; `lost` is null where the number is
    unknown."""
    data = F.col("data")
    return (
        events.where("kind = 'gap'")
        .select(
            *_OF_A_QUEUE,
            F.get_json_object(data, "$.after").alias("after"),
            F.get_json_object(data, "$.before").alias("before"),
            F.get_json_object(data, "$.lost").try_cast("bigint").alias("lost"),
            F.col("happened_at").alias("noticed_at"),
        )
        .select(*GAPS.names)
    )


def checks(tallies: DataFrame, quarantined: DataFrame) -> DataFrame:
    """Returns a row per check and queue, from the tallies of all days. Where `ok` is false, an operator should look;
    the others inform."""
    malformed = _tally(quarantined, **{"malformed rows": F.count("*")}).withColumnRenamed("tally", "check_name")
    of_checks = tallies.where(F.col("tally").isin(*_HARMLESS, *_TO_LOOK_AT)).withColumnRenamed("tally", "check_name")
    check = F.col("check_name")
    notes = [F.when(check == name, note) for name, note in (_HARMLESS | _TO_LOOK_AT).items()]
    return (
        of_checks.groupBy(*_OF_A_QUEUE, "check_name")
        .agg(F.sum("value").alias("value"))
        .unionByName(malformed)
        .withColumn("ok", check.isin(*_HARMLESS) | (F.col("value") == 0))
        .withColumn("note", F.coalesce(*notes))
        .select(*QUALITY.names)
    )


def tallies(
    bronze_events: DataFrame, events: DataFrame, jobs: DataFrame, attempts: DataFrame, *, expired: str | None = None
) -> DataFrame:
    """Returns the counts of each day that the checks are sums of, in columns of TALLIES. Before the day `expired`,
    bronze has not all of its rows any more, and duplicates are not counted."""
    still_there = F.lit(True) if expired is None else F.col("day") >= F.lit(expired).cast("date")
    duplicates = _tally(
        bronze_events.where(event_flaw().isNull() & still_there), "day", **{"duplicate events": F.count("*")}
    ).unionByName(_tally(events.where(still_there), "day", **{"duplicate events": -F.count("*")}))
    found = [
        duplicates,
        _tally(events, "day", events=F.count("*"), gaps=F.count_if(F.col("kind") == "gap")),
        _tally(
            jobs,
            "day",
            jobs=F.count("*"),
            **{
                "jobs of unknown beginning": F.count_if(F.col("created_at").isNull()),
                "finished before started": F.count_if(F.col("finished_at") < F.col("started_at")),
            },
        ),
        _tally(
            attempts,
            "day",
            attempts=F.count("*"),
            **{
                FORGOTTEN: F.coalesce(F.sum("forgotten"), F.lit(0)).cast("bigint"),
                "runs of unknown workers": F.count_if(F.col("worker").isNull()),
                "open attempts": F.count_if(F.col("outcome") == "open"),
                "started before ready": F.count_if(F.col("started_at") < F.col("ready_at")),
            },
        ),
    ]
    return (
        reduce(DataFrame.unionByName, found)
        .withColumn("name", F.lit(None).cast("string"))
        .withColumn("number", F.lit(None).cast("int"))
        .select(*TALLIES.names)
    )


def _tally(rows: DataFrame, *also: str, **measures: Column) -> DataFrame:
    """Returns each measure of each queue, and of each value of the columns `also`, as a row `tally, value`. All in one
    pass."""
    of_group = [*_OF_A_QUEUE, *also]
    wide = rows.groupBy(*of_group).agg(*(measure.alias(name) for name, measure in measures.items()))
    return wide.unpivot([F.col(name) for name in of_group], [F.col(name) for name in measures], "tally", "value")
