"""Silver deliveries into gold: what campaigns sent, against their rates, and how channels fared.

A message counts at the time at which it was sent or failed. Messages that are queued or being sent do not count yet.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.history.error_class import error_class
from jobwire.pipeline.lake.campaign_schemas import CAMPAIGN_DAILY, CAMPAIGN_HOURLY, CHANNEL_HEALTH
from jobwire.pipeline.spark.utc import utc_day, utc_hour, utc_minute

_CAMPAIGN = ("store", "campaign_id")
_CHANNEL = ("store", "channel_id")


def settled(deliveries: DataFrame) -> DataFrame:
    """Returns the deliveries that were sent or failed, with the time `at` of that, and for failures a `cause`: the
    reason, or the class of the error if it has none. Adopted rows may lack the time: that of their last attempt, or of
    their creation, stands for it."""
    failed = F.col("status") == "FAILED"
    cause = F.coalesce(F.nullif("reason", F.lit("")), error_class(F.col("error")), F.lit("(no error)"))
    return (
        deliveries.where("status in ('SENT', 'FAILED')")
        .withColumn(
            "at", F.coalesce(F.when(failed, F.col("failed_at")).otherwise(F.col("sent_at")), "started_at", "created_at")
        )
        .withColumn("failed", failed)
        .withColumn("cause", F.when(failed, cause))
    )


def campaign_hourly(settled: DataFrame) -> DataFrame:
    """Returns what each campaign sent in each hour."""
    return _counted(settled, "hour", utc_hour(F.col("minute"))).select(*CAMPAIGN_HOURLY.names)


def campaign_daily(settled: DataFrame) -> DataFrame:
    """Returns what each campaign sent on each day, and its failures by reason."""
    of_day = [*_CAMPAIGN, "day"]
    by_cause = (
        settled.where("failed and at is not null")
        .groupBy(*_CAMPAIGN, utc_day(F.col("at")).alias("day"), "cause")
        .agg(F.count("*").alias("count"))
        .groupBy(*of_day)
        .agg(F.sort_array(F.collect_list(F.struct((-F.col("count")).alias("order"), "cause", "count"))).alias("all"))
    )
    pairs = F.transform("all", lambda one: F.struct(one["cause"], one["count"]))
    failures = by_cause.select(*of_day, F.to_json(F.map_from_entries(pairs)).alias("failures"))
    return (
        _counted(settled, "day", utc_day(F.col("minute")))
        .join(failures, of_day, "left")
        .withColumn("failures", F.coalesce("failures", F.lit("{}")))
        .select(*CAMPAIGN_DAILY.names)
    )


def channel_health(settled: DataFrame, channels: DataFrame) -> DataFrame:
    """Returns how messages to each channel fared. Messages of TEST campaigns do not count: none reaches a channel."""
    at, failed = F.col("at"), F.col("failed")
    same = Window.partitionBy(*_CHANNEL)
    fared = (
        settled.where("mode = 'LIVE'")
        .withColumn("last_success", F.max(F.when(~failed, at)).over(same))
        .groupBy(*_CHANNEL)
        .agg(
            F.max_by("channel", "seen_at").alias("name_then"),
            F.count("*").alias("deliveries"),
            F.count_if(failed).alias("failures"),
            F.max("last_success").alias("last_success"),
            F.max(F.when(failed, at)).alias("last_failure"),
            F.max_by("cause", F.when(failed, F.struct(at, F.col("id")))).alias("last_reason"),
            F.min(F.when(failed & F.coalesce(at > F.col("last_success"), F.col("last_success").isNull()), at)).alias(
                "silent_since"
            ),
        )
    )
    known = channels.where("malformed is null").select(
        "store", F.col("id").alias("channel_id"), "username", "category", "is_active", "error_count"
    )
    return (
        known.join(fared, list(_CHANNEL), "full_outer")
        .withColumn("channel", F.coalesce("username", "name_then"))
        .withColumn("active", F.col("is_active"))
        .withColumn("consecutive_errors", F.col("error_count"))
        .withColumns({name: F.coalesce(name, F.lit(0)) for name in ("deliveries", "failures")})
        .select(*CHANNEL_HEALTH.names)
    )


def _counted(settled: DataFrame, grain: str, moment: Column) -> DataFrame:
    """Returns the counts of each campaign in each hour or day. Minutes are counted first: the busiest is among them."""
    failed, attempts = F.col("failed"), F.col("attempts")
    minutes = (
        settled.where("at is not null")
        .groupBy(*_CAMPAIGN, utc_minute(F.col("at")).alias("minute"))
        .agg(
            F.max(F.struct("seen_at", "campaign", "mode")).alias("newest"),
            F.count_if(~failed).alias("sent"),
            F.count_if(failed).alias("failed"),
            F.sum(attempts).alias("attempts"),
            F.sum(F.greatest(attempts - 1, F.lit(0))).alias("retries"),
            F.max("delivery_rate").alias("delivery_rate"),
        )
    )
    sent = F.col("sent")
    earliest_busiest = F.max_by("minute", F.when(sent > 0, F.struct(sent, -F.unix_micros("minute"))))
    return (
        minutes.groupBy(*_CAMPAIGN, moment.alias(grain))
        .agg(
            F.max("newest").alias("newest"),
            *(F.sum(name).alias(name) for name in ("sent", "failed", "attempts", "retries")),
            earliest_busiest.alias("busiest_minute"),
            F.max("sent").alias("busiest_sent"),
            F.max("delivery_rate").alias("delivery_rate"),
        )
        .withColumns({"campaign": F.col("newest.campaign"), "mode": F.col("newest.mode")})
    )
