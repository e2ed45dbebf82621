"""Silver events: one vocabulary of events for all protocols, each event once.

Kinds of events: added, waiting, delayed, started, progress, completed, failed, retried, stalled, cancelled, removed,
paused, resumed, gap, and other for what is none of these; `native_kind` keeps the protocol's own word. `failed` is for
good; a run that fails and is tried again shows as retried, waiting or delayed, as the protocol reports it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.history.quality import event_flaw
from jobwire.pipeline.lake.schemas import SILVER_EVENTS
from jobwire.pipeline.spark.utc import utc_day
from jobwire.pipeline.stores.dialect import Dialect, all_dialects

FINISHED = ("completed", "failed", "cancelled")
JOB_KEY = ("store", "queue", "job_id")
_ORDER_AT_ONE_MOMENT = ("added", "waiting", "delayed", "started", "progress")


def silver_events(bronze: DataFrame) -> DataFrame:
    """Returns sound events, each once, in one vocabulary."""
    # Sorting begins with a hash: ids share their first bytes, which is all that Spark's quick comparison looks at.
    same = Window.partitionBy(F.xxhash64("store", "queue", "id"), "id", "queue", "store")
    once = (
        bronze.where(event_flaw().isNull())
        .withColumn("reading", F.row_number().over(same.orderBy("ingested_at", "kind", "data")))
        .where("reading = 1")
    )
    opened = once.select(
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
    return opened.select(
        "store",
        "queue",
        "id",
        F.coalesce(F.when(again, "retried"), *words, F.lit("other")).alias("kind"),
        native.alias("native_kind"),
        "job_id",
        moment.alias("happened_at"),
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


def event_order() -> Column:
    """Returns the order of a job's events: by time, then as the store has them, then by the usual course of kinds."""
    in_stream = [number for one in all_dialects() if (number := one.number_in_stream()) is not None]
    ranks = [F.when(F.col("kind") == kind, rank) for rank, kind in enumerate(_ORDER_AT_ONE_MOMENT)]
    last = F.lit(len(ranks))
    numbers = (F.coalesce(*in_stream, F.lit(0)).alias("in_stream"), F.coalesce(*ranks, last).alias("rank"))
    return F.struct("happened_at", *numbers, "id")


def reusing_ids() -> Column:
    """Returns whether the store may give an id again. Where it does not, an add that seems to come after a start was
    written by another clock, and is not a new job."""
    return of_stores(lambda dialect: dialect.reuses_ids)


def job_name() -> Column:
    """Returns the name of the job in an event of its adding; null where the event does not have it."""
    return F.get_json_object("data", "$.name")


def of_stores(which: Callable[[Dialect], bool]) -> Column:
    """Returns whether a row comes from a store of a protocol of this kind."""
    return reduce(operator.or_, (one.of_store() for one in all_dialects() if which(one)), F.lit(False))


def due_at() -> Column:
    """Returns when an added, delayed or handed back job may run; null if its event does not have that time."""
    due = F.coalesce(*(dialect.due_time() for dialect in all_dialects()))
    return F.when(due.isNotNull(), F.greatest(due, "happened_at"))


def _named(name: Column, error: Column) -> Column:
    """Returns the error as Python and JavaScript show it, with its name if the event has one. JavaScript's `Error` is
    left out.

    In an event without an error, `name` is the job's.
    """
    return F.when(name.isNull() | (name == "Error"), error).otherwise(F.concat(name, F.lit(": "), error))
