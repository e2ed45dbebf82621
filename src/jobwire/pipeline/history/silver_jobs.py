"""Bronze into silver: one vocabulary of events for all protocols, and one row per job.

Kinds of events: added, waiting, delayed, started, progress, completed, failed, retried, stalled, cancelled, removed,
paused, resumed, gap, and other for what is none of these; `native_kind` keeps the protocol's own word. `failed` is for
good; a run that fails and is tried again shows as retried, waiting or delayed, as the protocol tells it.

Some stores give a job's id again after they were emptied, so a job here is the newest one of its id.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.history.error_class import error_class
from jobwire.pipeline.history.quality import event_flaw, job_flaw
from jobwire.pipeline.lake.schemas import SILVER_EVENTS, SILVER_JOBS
from jobwire.pipeline.spark.utc import utc_day
from jobwire.pipeline.stores.dialect import Dialect, all_dialects

FINISHED = ("completed", "failed", "cancelled")
JOB_KEY = ("store", "queue", "job_id")

_LEFT_IN = {
    "waiting": ("added", "waiting", "retried", "stalled"),
    "delayed": ("delayed",),
    "active": ("started",),
    "completed": ("completed",),
    "failed": ("failed",),
    "cancelled": ("cancelled",),
}
"""The state in which each kind of event leaves its job."""
_ORDER_AT_ONE_MOMENT = ("added", "waiting", "delayed", "started", "progress")
_SKEW = "INTERVAL 1 MINUTE"
"""How far the clocks of a store and of the pipeline may differ before a job is taken for another one of its id."""


def silver_events(bronze: DataFrame) -> DataFrame:
    """Sound events, each once, in one vocabulary."""
    # Sorting begins with a hash: ids share their first bytes, which is all that Spark's quick comparison looks at.
    same = Window.partitionBy(F.xxhash64("store", "queue", "id"), "id", "queue", "store")
    once = (
        bronze.where(event_flaw().isNull())
        .withColumn("reading", F.row_number().over(same.orderBy("ingested_at", "kind", "data")))
        .where("reading = 1")
    )
    told = once.select(
        "*",
        F.json_tuple("data", "prev", "worker", "error", "failedReason", "name").alias(
            "prev", "worker", "error", "failed_reason", "name"
        ),
    )
    native = F.col("kind")
    again = (native == "waiting") & F.col("prev").isin(
        *sorted({prev for one in all_dialects() for prev in one.retried_from})
    )
    words = [F.when(native.isin(*of_protocols), word) for word, of_protocols in _words().items()]
    moment = F.coalesce("at", "ingested_at")  # a gap has no time of its own
    return told.select(
        "store",
        "queue",
        "id",
        F.coalesce(F.when(again, "retried"), *words, F.lit("other")).alias("kind"),
        native.alias("native_kind"),
        "job_id",
        moment.alias("at"),
        "worker",
        _named(F.col("name"), F.coalesce("error", "failed_reason")).alias("error"),
        "data",
        utc_day(moment).alias("day"),
    ).select(*SILVER_EVENTS.names)


def _words() -> dict[str, set[str]]:
    """Returns the words of all protocols for each kind of event."""
    words = {"gap": {"gap"}}  # our own
    for dialect in all_dialects():
        for kind, native in dialect.event_words.items():
            words.setdefault(kind, set()).update(native)
    return words


def place_in_time() -> Column:
    """What events of a job are ordered by: the time, then as the store told them, then as a life goes."""
    in_stream = [place for one in all_dialects() if (place := one.place_in_stream()) is not None]
    ranks = [F.when(F.col("kind") == kind, rank) for rank, kind in enumerate(_ORDER_AT_ONE_MOMENT)]
    last = F.lit(len(ranks))
    return F.struct(
        "at", F.coalesce(*in_stream, F.lit(0)).alias("in_stream"), F.coalesce(*ranks, last).alias("rank"), "id"
    )


def reusing_ids() -> Column:
    """Whether the store may give an id again. Where it does not, an adding that seems to come after a start has a
    clock of its own, and is no new job."""
    return of_stores(lambda dialect: dialect.reuses_ids)


def of_stores(which: Callable[[Dialect], bool]) -> Column:
    """Returns whether a row comes from a store of a protocol of this kind."""
    return reduce(operator.or_, (one.of_store() for one in all_dialects() if which(one)), F.lit(False))


def due_at() -> Column:
    """When an added, delayed or handed back job may run, as its event says; null if it does not."""
    due = F.coalesce(*(dialect.due_time() for dialect in all_dialects()))
    return F.when(due.isNotNull(), F.greatest(due, "at"))


def silver_jobs(snapshots: DataFrame, events: DataFrame) -> DataFrame:
    """One row per job: as it was last seen, with what events tell beyond that; from them alone if it was never seen.

    `snapshots` is bronze, `events` is silver.
    """
    seen, told = F.col("seen"), F.col("told")
    both = _last_seen(snapshots).join(_told(events), list(JOB_KEY), "full_outer")
    another = reusing_ids() & (told.added_at > seen.seen_at + F.expr(_SKEW))
    both = both.withColumn("seen", F.when(~F.coalesce(another, F.lit(False)), seen))
    # A job goes on while a snapshot is taken, so its own times may be later than the snapshot's.
    known_until = F.greatest(seen.seen_at, seen.started_at, seen.finished_at)
    later = F.coalesce(told.state_at > known_until, seen.isNull())

    def newest(of_snapshot: Column, of_events: Column) -> Column:
        return F.when(later, F.coalesce(of_events, of_snapshot)).otherwise(F.coalesce(of_snapshot, of_events))

    state = newest(seen.state, told.state)
    error = newest(seen.error, told.error)
    created_at = F.coalesce(seen.created_at, told.added_at)
    runs_over = told.starts - F.when(told.state == "active", 1).otherwise(0)
    return both.select(
        "store",
        "queue",
        F.col("job_id").alias("id"),
        F.coalesce(seen["name"], told["name"]).alias("name"),
        state.alias("state"),
        seen.priority.alias("priority"),
        seen.attempts.alias("attempts"),
        F.when(later, F.greatest(seen.attempts_made, runs_over))
        .otherwise(F.coalesce(seen.attempts_made, runs_over))
        .cast("int")
        .alias("attempts_made"),
        seen.payload.alias("payload"),
        F.sha2(seen.payload, 256).alias("payload_hash"),
        newest(seen.result, told.result).alias("result"),
        error.alias("error"),
        error_class(error).alias("error_class"),
        seen.parent.alias("parent"),
        _campaign(seen.payload).alias("campaign"),
        created_at.alias("created_at"),
        newest(seen.run_at, told.due_at).alias("scheduled_at"),
        newest(seen.started_at, told.started_at).alias("started_at"),
        F.when(state.isin(*FINISHED), newest(seen.finished_at, told.finished_at)).alias("finished_at"),
        newest(seen.worker, told.worker).alias("worker"),
        seen.seen_at.alias("seen_at"),
        utc_day(F.coalesce(created_at, F.least(seen.first_seen_at, told.first_at))).alias("day"),
    ).select(*SILVER_JOBS.names)


def _last_seen(snapshots: DataFrame) -> DataFrame:
    """`store, queue, job_id, seen`: each job as the newest snapshot has it.

    One snapshot may hold a job twice, when it changed its state meanwhile: the one that got further counts.
    """
    same = Window.partitionBy(F.xxhash64("store", "queue", "id"), "id", "queue", "store")
    further = F.when(F.col("state").isin(*FINISHED), 2).when(F.col("state") == "active", 1).otherwise(0)
    newest_first = [
        F.desc("seen_at"),
        F.desc_nulls_last("created_at"),
        F.desc_nulls_last("attempts_made"),
        further.desc(),
        F.desc_nulls_last("fingerprint"),
        F.desc("state"),
    ]
    carried = [
        "name",
        "state",
        "priority",
        "attempts",
        "attempts_made",
        "payload",
        "result",
        "error",
        "parent",
        "created_at",
        "run_at",
        "started_at",
        "finished_at",
        "worker",
        "seen_at",
        "first_seen_at",
    ]
    return (
        snapshots.where(job_flaw().isNull())
        .withColumn("first_seen_at", F.min("seen_at").over(same))
        .withColumn("reading", F.row_number().over(same.orderBy(*newest_first)))
        .where("reading = 1")
        .select("store", "queue", F.col("id").alias("job_id"), F.struct(*carried).alias("seen"))
    )


def _told(events: DataFrame) -> DataFrame:
    """`store, queue, job_id, told`: what the events say of each job since it was last added."""
    same = Window.partitionBy(F.xxhash64(*JOB_KEY), *reversed(JOB_KEY))
    kind, place = F.col("kind"), F.col("place")
    states = [F.when(kind.isin(*kinds), state) for state, kinds in _LEFT_IN.items()]
    of_life = (
        events.where("job_id is not null and kind not in ('progress', 'other', 'paused', 'resumed', 'gap')")
        .withColumn("added_at", F.max(F.when(kind == "added", F.col("at"))).over(same))
        .where(~reusing_ids() | F.col("added_at").isNull() | (F.col("at") >= F.col("added_at")))
        .withColumn("place", place_in_time())
        .withColumn("state", F.coalesce(*states))
        .withColumn("due_at", F.when(kind.isin("added", "delayed"), due_at()))
        .withColumn("name", F.when(kind == "added", F.get_json_object("data", "$.name")))
        .withColumn("result", F.when(kind == "completed", _result(F.col("data"))))
    )

    def last(name: str) -> Column:
        return F.max_by(name, F.when(F.col(name).isNotNull(), place)).alias(name)

    def time_of(*kinds: str) -> Column:
        return F.max(F.when(kind.isin(*kinds), F.col("at")))

    return (
        of_life.groupBy(F.xxhash64(*JOB_KEY).alias("key"), *JOB_KEY)
        .agg(
            last("state"),
            last("name"),
            last("result"),
            last("error"),
            last("worker"),
            last("due_at"),
            F.max("added_at").alias("added_at"),
            F.max(F.when(F.col("state").isNotNull(), F.col("at"))).alias("state_at"),
            F.min("at").alias("first_at"),
            time_of("started").alias("started_at"),
            time_of(*FINISHED).alias("finished_at"),
            F.count_if(kind == "started").alias("starts"),
        )
        .select(
            *JOB_KEY,
            F.struct(
                *[
                    "state",
                    "name",
                    "result",
                    "error",
                    "worker",
                    "due_at",
                    "added_at",
                    "state_at",
                    "first_at",
                    "started_at",
                    "finished_at",
                    "starts",
                ]
            ).alias("told"),
        )
    )


def _result(data: Column) -> Column:
    return F.coalesce(F.get_json_object(data, "$.returnvalue"), F.get_json_object(data, "$.result"))


def _named(name: Column, error: Column) -> Column:
    """The error as Python and JavaScript show it, where its name came beside it; JavaScript's `Error` says nothing.

    In an event without an error, `name` is the job's.
    """
    return F.when(name.isNull() | (name == "Error"), error).otherwise(F.concat(name, F.lit(": "), error))


def _campaign(payload: Column) -> Column:
    return F.coalesce(F.get_json_object(payload, "$.campaign_id"), F.get_json_object(payload, "$.campaign"))
