"""Silver jobs: one row per job, from snapshots and events.

Some stores give a job's id again after they were emptied, so a job here is the newest one of its id.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.history.error_class import error_class, error_of_stack
from jobwire.pipeline.history.quality import job_flaw
from jobwire.pipeline.history.silver_events import FINISHED, JOB_KEY, due_at, event_order, job_name, reusing_ids
from jobwire.pipeline.lake.schemas import SILVER_JOBS
from jobwire.pipeline.spark.utc import utc_day
from jobwire.pipeline.stores.dialect import all_dialects

_LEFT_IN = {
    "waiting": ("added", "waiting", "retried", "stalled"),
    "delayed": ("delayed",),
    "active": ("started",),
    "completed": ("completed",),
    "failed": ("failed",),
    "cancelled": ("cancelled",),
}
"""The state in which each kind of event leaves its job."""
_SKEW = "INTERVAL 1 MINUTE"
"""The clocks of a store and of the pipeline may differ by this much before a job counts as another one of its id."""


def silver_jobs(snapshots: DataFrame, events: DataFrame) -> DataFrame:
    """Returns one row per job: as it was last seen, with what events add to that; from events alone if it was never
    seen.

    `snapshots` is bronze, `events` is silver.
    """
    seen, reported = F.col("seen"), F.col("reported")
    both = _last_seen(snapshots).join(_reported(events), list(JOB_KEY), "full_outer")
    another = reusing_ids() & (reported.added_at > seen.seen_at + F.expr(_SKEW))
    both = both.withColumn("seen", F.when(~F.coalesce(another, F.lit(False)), seen))
    # A job continues while a snapshot is taken, so its own times may be later than the snapshot's.
    known_until = F.greatest(seen.seen_at, seen.started_at, seen.finished_at)
    later = F.coalesce(reported.state_at > known_until, seen.isNull())

    def newest(of_snapshot: Column, of_events: Column) -> Column:
        return F.when(later, F.coalesce(of_events, of_snapshot)).otherwise(F.coalesce(of_snapshot, of_events))

    state = newest(seen.state, reported.state)
    error = newest(seen.error, reported.error)
    created_at = F.coalesce(seen.created_at, reported.added_at)
    runs_over = reported.starts - F.when(reported.state == "active", 1).otherwise(0)
    return both.select(
        "store",
        "queue",
        F.col("job_id").alias("id"),
        F.coalesce(seen["name"], reported["name"]).alias("name"),
        state.alias("state"),
        seen.priority.alias("priority"),
        seen.attempts.alias("attempts"),
        F.when(later, F.greatest(seen.attempts_made, runs_over))
        .otherwise(F.coalesce(seen.attempts_made, runs_over))
        .cast("int")
        .alias("attempts_made"),
        seen.payload.alias("payload"),
        F.sha2(seen.payload, 256).alias("payload_hash"),
        newest(seen.result, reported.result).alias("result"),
        error.alias("error"),
        error_class(error, seen.stacktrace).alias("error_class"),
        _run_errors(seen).alias("run_errors"),
        seen.parent.alias("parent"),
        _campaign(seen.payload).alias("campaign"),
        created_at.alias("created_at"),
        newest(seen.run_at, reported.due_at).alias("scheduled_at"),
        newest(seen.started_at, reported.started_at).alias("started_at"),
        F.when(state.isin(*FINISHED), newest(seen.finished_at, reported.finished_at)).alias("finished_at"),
        newest(seen.worker, reported.worker).alias("worker"),
        seen.seen_at.alias("seen_at"),
        # An event that is older than the job is that of another job of its id.
        F.coalesce(reported.added_at >= created_at - F.expr(_SKEW), F.lit(False)).alias("adding_reported"),
        utc_day(F.coalesce(created_at, F.least(seen.first_seen_at, reported.first_at))).alias("day"),
    ).select(*SILVER_JOBS.names)


def _last_seen(snapshots: DataFrame) -> DataFrame:
    """Returns `store, queue, job_id, seen`: each job as the newest snapshot has it.

    One snapshot may hold a job twice, when its state changed during the read: the later state counts.
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
        "stacktrace",
        "stacks",
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
        .withColumn(
            "stacks", F.coalesce(*(stacks for one in all_dialects() if (stacks := one.run_stacks()) is not None))
        )
        .select("store", "queue", F.col("id").alias("job_id"), F.struct(*carried).alias("seen"))
    )


def _reported(events: DataFrame) -> DataFrame:
    """Returns `store, queue, job_id, reported`: what the events have of each job since it was last added."""
    same = Window.partitionBy(F.xxhash64(*JOB_KEY), *reversed(JOB_KEY))
    kind, order = F.col("kind"), F.col("event_order")
    states = [F.when(kind.isin(*kinds), state) for state, kinds in _LEFT_IN.items()]
    of_life = (
        events.where("job_id is not null and kind not in ('progress', 'other', 'paused', 'resumed', 'gap')")
        .withColumn("added_at", F.max(F.when(kind == "added", F.col("happened_at"))).over(same))
        .where(~reusing_ids() | F.col("added_at").isNull() | (F.col("happened_at") >= F.col("added_at")))
        .withColumn("event_order", event_order())
        .withColumn("state", F.coalesce(*states))
        .withColumn("due_at", F.when(kind.isin("added", "delayed"), due_at()))
        .withColumn("name", F.when(kind == "added", job_name()))
        .withColumn("result", F.when(kind == "completed", _result(F.col("data"))))
    )

    def last(name: str) -> Column:
        return F.max_by(name, F.when(F.col(name).isNotNull(), order)).alias(name)

    def time_of(*kinds: str) -> Column:
        return F.max(F.when(kind.isin(*kinds), F.col("happened_at")))

    start = F.max(F.when(kind == "started", order))
    named = F.max(F.when(F.col("worker").isNotNull(), F.struct(order.alias("order"), "worker")))
    return (
        of_life.groupBy(F.xxhash64(*JOB_KEY).alias("key"), *JOB_KEY)
        .agg(
            last("state"),
            last("name"),
            last("result"),
            last("error"),
            # An event of an earlier run does not name the worker of the last one.
            F.when(start.isNull() | (named.order >= start), named.worker).alias("worker"),
            last("due_at"),
            F.max("added_at").alias("added_at"),
            F.max(F.when(F.col("state").isNotNull(), F.col("happened_at"))).alias("state_at"),
            F.min("happened_at").alias("first_at"),
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
            ).alias("reported"),
        )
    )


def _run_errors(seen: Column) -> Column:
    """Returns the errors of a job's failed runs by their numbers, as JSON; null where the store keeps no list of them.
    The last stack is that of the last failed run. A store may have kept fewer stacks than there were runs."""
    failed = seen.attempts_made - F.when(seen.state == "completed", 1).otherwise(0)

    def numbered(stack: Column, index: Column) -> Column:
        number = failed - F.size(seen.stacks) + index + 1
        return F.struct(number.alias("number"), error_of_stack(stack).alias("error"))

    known = F.filter(F.transform(seen.stacks, numbered), lambda one: one.number > 0)
    texts = F.transform(known, lambda one: F.struct(one.number.cast("string"), one.error))
    return F.when(F.size(known) > 0, F.to_json(F.map_from_entries(texts)))


def _result(data: Column) -> Column:
    return F.coalesce(F.get_json_object(data, "$.returnvalue"), F.get_json_object(data, "$.result"))


def _campaign(payload: Column) -> Column:
    return F.coalesce(F.get_json_object(payload, "$.campaign_id"), F.get_json_object(payload, "$.campaign"))
