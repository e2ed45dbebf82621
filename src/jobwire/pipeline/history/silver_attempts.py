"""Rebuilds the runs of jobs from silver events and jobs.

A job's events are cut at its starts: what comes after one start and before the next belongs to that run. The first
event in there that ends a run is its outcome. The last one that hands the job back is the time from which the next run
could have begun. What the events lack, the job itself may have: its last start, its finish.

* A run that was followed by a retry has failed, unless the store reports within a second that it had stalled. Some
  protocols report a retry as a delay, and a rate limit's or a snoozing handler's hand-back likewise.
* A run that was handed back unharmed (waiting, other protocols' delays, waiting for children) is not a run: stores do
  not count it either. Where a delay may mean either, as many are taken for hand-backs as the job has runs beyond those
  that it counts itself, the earliest ones first.
* A run without an end, after which another began, has failed at an unknown time.
* A finish without any known start is a run of which only the end is known: `started_at` is null.
* A failed run whose events hold no error gets it from its job: its own, where the store keeps one for every failed run
  of a job, else the last.
* Where a store has forgotten earlier runs, the known ones are numbered from the job's own count, and `forgotten` is the
  number of those that are missing before a run. Such a run became ready at the time in its event, or at an unknown one:
  not when the job was added.
* A run without an end, after which another began with the same number of the store's, was not charged: it has stalled.
* A stalled run ended at an unknown time, before it was found to be stalled: it has no running time.
* A run that was over before the time from which it could have begun became ready at an unknown time: the job was
  promoted, or that is the time of a later job of its id.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.history.error_class import error_class
from jobwire.pipeline.history.silver_events import FINISHED, JOB_KEY, due_at, event_order, of_stores, reusing_ids
from jobwire.pipeline.lake.schemas import ATTEMPTS
from jobwire.pipeline.spark.utc import ms_between, utc_day
from jobwire.pipeline.stores.dialect import all_dialects

_HANDED_BACK = ("waiting", "delayed", "retried")
_ENDS = (*_HANDED_BACK, "completed", "failed", "stalled", "cancelled")
_STALL_REPORTED_WITHIN = "INTERVAL 1 SECOND"
"""A stalled job may be handed back first and then be called stalled, by one script."""
_CLOCKS_AGREE_WITHIN = "INTERVAL 1 SECOND"
"""Producers and workers write a store's time as each knows it."""
_TO_RUN_AGAIN = ("waiting", "delayed", "paused")


def attempts(events: DataFrame, jobs: DataFrame) -> DataFrame:
    """Returns one row per run, from silver events and silver jobs."""
    of_job = jobs.select(
        "store",
        "queue",
        F.col("id").alias("job_id"),
        F.struct(
            *[
                "name",
                "state",
                "error",
                "error_class",
                "run_errors",
                "worker",
                "attempts_made",
                "created_at",
                "scheduled_at",
                "started_at",
                "finished_at",
                "seen_at",
            ]
        ).alias("job"),
    )
    runs = _numbered(_cut(events)).join(of_job, list(JOB_KEY), "full_outer")
    return _measured(_closed(_with_those_of_jobs_alone(_without_hand_backs(runs))))


def _cut(events: DataFrame) -> DataFrame:
    """Returns each job's events from one start, or one add, to the next as one row."""
    kind, at = F.col("kind"), F.col("happened_at")
    of_job = Window.partitionBy(F.xxhash64(*JOB_KEY), *reversed(JOB_KEY)).orderBy("event_order")
    over_to_children = F.col("native_kind") == "waiting-children"
    of_runs = (
        events.where(F.col("job_id").isNotNull() & (kind.isin("added", "started", *_ENDS) | over_to_children))
        .repartition(*JOB_KEY)
        .withColumn("event_order", event_order())
        .withColumn("run", F.count_if(kind == "started").over(of_job))
        .withColumn("life", F.count_if((kind == "added") & reusing_ids()).over(of_job))
    )
    started = kind == "started"
    ended = F.struct("event_order", "kind", at.alias("at"), "error")
    due = F.when(kind.isin("added", "stalled", *_HANDED_BACK), due_at())
    ready = F.max(F.when(kind.isin("added", "stalled", *_HANDED_BACK), F.struct("event_order", at.alias("at"))))
    delayed = F.max(F.when(due.isNotNull(), F.struct("event_order", due.alias("due"))))
    return (
        of_runs.groupBy(F.xxhash64(*JOB_KEY).alias("key"), *JOB_KEY, "run", "life")
        .agg(
            F.min(F.when(started, at)).alias("started_at"),
            F.max(F.when(started, F.col("worker"))).alias("worker"),
            F.max(F.when(started, _own_number())).alias("own_number"),
            F.max(F.when(started, _own_ready_time())).alias("own_ready_at"),
            F.min(F.when(~started & (kind != "added"), ended)).alias("end"),
            F.min(F.when(kind == "stalled", at)).alias("stalled_at"),
            F.bool_or(kind == "failed").alias("gave_up"),
            F.bool_or(kind == "added").alias("added"),
            ready.alias("ready"),
            delayed.alias("delayed"),
        )
        .withColumn("next_ready_at", _became_ready(F.col("ready"), F.col("delayed")))
    )


def _own_number() -> Column:
    """Returns the run's number where the event holds it."""
    return F.coalesce(*(number for one in all_dialects() if (number := one.run_number()) is not None))


def _own_ready_time() -> Column:
    """Returns when the run could have begun, where the event of its start holds that."""
    none = F.lit(None).cast("timestamp")
    return F.coalesce(*(ready for one in all_dialects() if (ready := one.ready_time()) is not None), none)


def _became_ready(ready: Column, delayed: Column) -> Column:
    """Returns when the job became ready: at its due time if that is known, or before if an operator promoted it."""
    return (
        F.when(delayed.isNull(), ready.at)
        .when(ready.event_order > delayed.event_order, F.least(delayed.due, ready.at))
        .otherwise(delayed.due)
    )


def _numbered(cut: DataFrame) -> DataFrame:
    """Returns the runs among the rows: `number` of `known` in one life of the job, `last` for the newest run of all."""
    of_job = Window.partitionBy("key", *reversed(JOB_KEY))
    in_order = of_job.orderBy("run", "life")
    of_life = Window.partitionBy("key", *reversed(JOB_KEY), "life")
    runs = (
        cut.withColumn("ready_at", F.lag("next_ready_at").over(in_order))
        .withColumn("after_add", F.coalesce(F.lag("added").over(in_order), F.lit(True)))
        .withColumn("number_before", F.lag("own_number").over(of_life.orderBy("run")))
        .where("started_at is not null")
    )
    end = F.col("end.kind")
    unharmed = end.isin("waiting", "other") | (
        (end == "delayed") & ~of_stores(lambda dialect: dialect.delays_failed_runs)
    )
    counted = runs.where(F.col("end").isNull() | ~unharmed)
    in_life = of_life.orderBy("run")
    earlier = in_life.rowsBetween(Window.unboundedPreceding, -1)
    stalled = F.coalesce(_has_stalled(), F.lit(False))
    delayed = F.coalesce(end == "delayed", F.lit(False)) & ~stalled
    return (
        counted.withColumn("last", F.lead("run").over(in_order).isNull())
        .withColumn("newest_life", F.max("life").over(of_job) == F.col("life"))
        .withColumn("number", F.row_number().over(in_life))
        .withColumn("known", F.count("*").over(of_life))
        .withColumn("uncharged", F.col("end").isNull() & (F.lead("own_number").over(in_life) == F.col("own_number")))
        .withColumn("uncharged_before", F.count_if("uncharged").over(earlier))
        # A stall is not charged, so that it has no number in the store.
        .withColumn("charged", F.count_if(~stalled).over(in_life))
        .withColumn("charged_of_life", F.count_if(~stalled).over(of_life))
        .withColumn("delayed_before", F.count_if(delayed).over(earlier))
        .withColumn("delayed_of_life", F.count_if(delayed).over(of_life))
        .withColumn("given_up", F.count_if("gave_up").over(of_life))
        .drop("key", "life", "added", "ready", "delayed", "next_ready_at")
    )


def _without_hand_backs(runs: DataFrame) -> DataFrame:
    """Leaves out delayed runs that the job itself has not counted. An operator's retry may have set its count to 0, so
    jobs that had failed for good before are left as they are."""
    job, earlier = F.col("job"), F.col("delayed_before")
    over = job.state.isin(*FINISHED) | (job.state.isin(*_TO_RUN_AGAIN) & (job.seen_at > F.col("started_at")))
    never_retried = F.col("given_up") <= F.when(job.state == "failed", 1).otherwise(0)
    beyond = F.when(F.col("newest_life") & over & never_retried, F.col("charged_of_life") - job.attempts_made)
    handed_back = F.least("delayed_of_life", F.greatest(F.lit(0), beyond))
    gone_before = F.least(earlier, handed_back)
    is_delayed = F.coalesce((F.col("end.kind") == "delayed") & ~F.coalesce(_has_stalled(), F.lit(False)), F.lit(False))
    return (
        runs.where(~is_delayed | (earlier >= handed_back))
        .withColumn("known", F.col("known") - handed_back)
        .withColumn("number", F.col("number") - gone_before)
        .withColumn("charged", F.col("charged") - gone_before)
        .drop("delayed_before", "delayed_of_life", "charged_of_life", "given_up")
    )


def _with_those_of_jobs_alone(runs: DataFrame) -> DataFrame:
    """Adds the run that a job without any start event remembers itself, if it does."""
    job = F.col("job")
    remembered = job.started_at.isNotNull() | job.state.isin("completed", "failed")
    return (
        runs.where(F.col("run").isNotNull() | remembered)
        .withColumn("started_at", F.coalesce("started_at", job.started_at))
        .withColumn("last", F.coalesce("last", F.lit(True)))
        .withColumn("newest_life", F.coalesce("newest_life", F.lit(True)))
        .withColumn("number", F.coalesce("number", F.greatest(F.lit(1), job.attempts_made)))
        .withColumn("known", F.coalesce("known", "number"))
        .withColumn("charged", F.coalesce("charged", "number"))
    )


def _closed(runs: DataFrame) -> DataFrame:
    """Returns the runs with their ends, from events or else from the job itself."""
    end, job, last, newest_life = F.col("end"), F.col("job"), F.col("last"), F.col("newest_life")
    finished = job.state.isin(*FINISHED)
    seen_later = F.col("run").isNull() | (job.seen_at > F.col("started_at"))
    outcome = (
        F.when(_has_stalled() | F.col("uncharged"), "stalled")
        .when(end.kind == "completed", "completed")
        .when(end.isNotNull() | ~last, "failed")
        .when(finished, F.when(job.state == "completed", "completed").otherwise("failed"))
        .when(job.state.isin(*_TO_RUN_AGAIN) & seen_later, "failed")
        .otherwise("open")
    )
    over = finished | (job.state.isin(*_TO_RUN_AGAIN) & seen_later)
    lost = F.when(newest_life & over, F.greatest(F.lit(0), job.attempts_made - F.col("known")))
    own_number = F.col("own_number")
    number = F.coalesce(own_number + F.col("uncharged_before"), F.col("number") + F.coalesce(lost, F.lit(0)))
    first_known = F.col("run").isNull() | (F.col("number") == 1)
    forgotten = (
        F.when(own_number.isNotNull(), own_number - F.coalesce("number_before", F.lit(0)) - 1)
        .when(first_known, number - 1)
        .otherwise(0)
    )
    handed_back = own_number.isNull() & ~F.col("after_add")
    follows = F.when((forgotten <= 0) | handed_back, F.coalesce("ready_at", F.when(first_known, job.created_at)))
    # A store that has recovered a job may keep its due time from before the run that has stalled.
    after_stall = F.when(F.col("ready_at") <= F.col("started_at"), F.col("ready_at"))
    own_ready_at = F.when(F.col("own_ready_at").isNotNull(), F.greatest("own_ready_at", after_stall))
    known_ready_at = F.coalesce(own_ready_at, follows)
    over_before = end.at + F.expr(_CLOCKS_AGREE_WITHIN) < known_ready_at
    ready_at = F.when(~F.coalesce(over_before, F.lit(False)), known_ready_at)
    of_this_run = newest_life & (last | (number == 1)) & (job.scheduled_at <= F.col("started_at"))
    cancelled = F.when(F.coalesce(end.kind, F.when(last, job.state)) == "cancelled", "cancelled")
    of_runs = F.from_json(job.run_errors, "map<string, string>")
    of_run = of_runs[(F.col("charged") + F.coalesce(lost, F.lit(0))).cast("string")]
    of_last = F.when(of_runs.isNull() | (last & (job.state == "failed")), job.error)
    error = F.coalesce(end.error, F.when(newest_life, F.coalesce(of_run, of_last)), cancelled)
    return runs.select(
        *JOB_KEY,
        job["name"].alias("name"),
        number.cast("int").alias("attempt"),
        F.when(ready_at.isNotNull() & of_this_run, F.greatest(ready_at, job.scheduled_at))
        .otherwise(ready_at)
        .alias("ready_at"),
        "started_at",
        F.when(last & end.isNull() & finished, job.finished_at).otherwise(end.at).alias("ended_at"),
        outcome.alias("outcome"),
        F.when(outcome == "failed", error).alias("error"),
        F.struct(job.error.alias("text"), job.error_class.alias("class")).alias("of_job"),
        F.coalesce("worker", F.when(last, job.worker)).alias("worker"),
        F.coalesce(F.col("gave_up") | (last & newest_life & (job.state == "failed")), F.lit(False)).alias("gave_up"),
        F.greatest(F.lit(0), forgotten).cast("int").alias("forgotten"),
    )


def _has_stalled() -> Column:
    """Returns whether a run has stalled; null without an end."""
    return F.col("stalled_at") <= F.col("end.at") + F.expr(_STALL_REPORTED_WITHIN)


def _measured(runs: DataFrame) -> DataFrame:
    started, ended = F.col("started_at"), F.col("ended_at")
    known = F.coalesce("started_at", "ended_at")
    ran_to_its_end = started.isNotNull() & (F.col("outcome") != "stalled")
    return (
        runs.where(known.isNotNull())
        .withColumn("error_class", _class(F.col("error"), F.col("of_job")))
        .withColumn("wait_ms", ms_between(F.col("ready_at"), started))
        .withColumn("run_ms", F.when(ran_to_its_end & ended.isNotNull(), ms_between(started, ended)))
        .withColumn("day", utc_day(known))
        .select(*ATTEMPTS.names)
    )


def _class(error: Column, of_job: Column) -> Column:
    """Returns the class of a run's error. It is the job's if their messages are alike: the job has a stack as well."""
    own = error_class(error)
    return F.when(own == error_class(of_job.text), of_job["class"]).otherwise(own)
