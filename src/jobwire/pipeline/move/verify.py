"""Compares what was moved with what the target holds: content, due time and order, read back from the store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobwire import codec
from jobwire.pipeline.datasource.add_rows import with_presence
from jobwire.pipeline.datasource.content import content_of
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.move.plan import jobs_of, once
from jobwire.pipeline.move.route import Route
from jobwire.pipeline.move.running_move import RunningMove
from jobwire.pipeline.stores.blocking import BlockingBackend
from jobwire.pipeline.stores.dialect import Dialect, dialect_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DUE_WITHIN_US = 1000
"""In microseconds. A due time may differ by this much: some stores count it from the whole millisecond of the add."""
_SEEN = JOBS.without([name for name in JOBS.names if name not in ("id", "native_state", "position", "created_at")])
SEEN = _SEEN.plus("run_at timestamp", "late boolean", "level bigint", "content string")


@dataclass(frozen=True)
class Verified:
    """The result of comparing manifest and target.

    The checksums are sums over the jobs that have not begun: of their ids, their contents, and their places in the
    order of runs if they are ready, their due times if they are not. One is computed from the manifest and one from
    what the target holds, so they agree if the jobs do.
    """

    equal: int
    begun: int
    """In the target, but no longer waiting: a worker there has taken them already."""
    missing: int
    changed: int
    """With another payload, name or due time than in the manifest."""
    out_of_order: int
    """Ready jobs that would run after a job that should run after them."""
    checksum_expected: int
    checksum_found: int
    due_changed: int = 0
    """Those of `changed` that differ in nothing but their due time."""

    @property
    def sound(self) -> bool:
        return not (self.missing or self.changed or self.out_of_order)

    @property
    def faults(self) -> list[str]:
        """Returns what is wrong, each fault with the number of its jobs."""
        faults = {
            "missing": self.missing,
            "with another payload": self.changed - self.due_changed,
            "with another due time": self.due_changed,
            "out of order": self.out_of_order,
        }
        return [f"{count} {fault}" for fault, count in faults.items() if count]

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "sound": self.sound}


def verify(running: RunningMove, *, for_good: bool = True) -> Verified:
    """Compares manifest and target. If it is for good, also writes down the jobs that have arrived: only these may be
    removed from the source."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    route, there = running.route, running.there
    compared = _compared(running.manifest(), _seen(running.spark, route, there)).persist()
    try:
        judged = compared.withColumn("begun", F.lit(False))
        absent = compared.where("NOT found").select("id", "target", F.lit(None).cast("string").alias("refused"))
        if absent.count():
            held = with_presence(absent, there.url, route.to_queue).where("held")
            begun = held.select("id", F.lit(True).alias("begun"))
            judged = compared.join(begun, "id", "left").withColumn("begun", F.coalesce("begun", F.lit(False)))
        if for_good:
            arrived = judged.where("equal OR begun").select("rank", "id", "target", "scheduled")
            running.lake.set_aside(running.path("verified"), arrived.repartition(1).sortWithinPartitions("rank"))
        same, found = F.col("same_content"), F.col("found")
        total = (
            _in_order(judged, dialect_of(route.to_protocol))
            .agg(
                F.count_if("equal").alias("equal"),
                F.count_if("begun").alias("begun"),
                F.count_if(~found & ~F.col("begun")).alias("missing"),
                F.count_if(found & ~F.col("equal")).alias("changed"),
                F.count_if(found & same & ~F.col("in_time")).alias("due_changed"),
                F.count_if("misplaced").alias("out_of_order"),
                F.sum("expected").alias("checksum_expected"),
                F.sum("actual").alias("checksum_found"),
            )
            .collect()[0]
        )
    finally:
        compared.unpersist()
    return Verified(**{name: int(value or 0) for name, value in total.asDict().items()})


def _seen(spark: SparkSession, route: Route, there: BlockingBackend) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    jobs = jobs_of(spark, there.url, route.to_queue, route.to_store, "waiting,paused,delayed")
    rows = jobs.withColumn("late", F.col("state") == "delayed")
    queue, protocol = route.to_queue, route.to_protocol

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [
                _content(payload, name, queue)
                for payload, name in zip(
                    batch.column("payload").to_pylist(), batch.column("name").to_pylist(), strict=True
                )
            ]
            levels = [dialect_of(protocol).level(priority) for priority in batch.column("priority").to_pylist()]
            kept = [batch.column(name) for name in SEEN.names[:-2]]
            made = [pa.array(levels, pa.int64()), pa.array(found, pa.string())]
            yield pa.record_batch([*kept, *made], schema=SEEN.arrow)

    wanted = [*SEEN.names[:-2], "payload", "name", "priority"]
    return once(rows.select(*wanted).mapInArrow(look, SEEN.ddl))


def _content(payload: str | None, name: str | None, queue: str) -> str | None:
    if payload is None:
        return None
    return content_of(codec.loads(payload), name if name not in ("", queue) else None)


def _compared(manifest: DataFrame, seen: DataFrame) -> DataFrame:
    """Returns a row per job of the manifest, with what was found of it in the target."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    wanted = manifest.select(
        "rank", "id", "target", "scheduled", "content", F.col("late").alias("is_late"), F.col("run_at").alias("due")
    )
    there = seen.withColumnsRenamed({"id": "seen_id", "content": "seen_content"})
    both = wanted.join(there, F.col("target") == F.col("seen_id"), "left")
    off = F.abs(F.unix_micros("run_at") - F.unix_micros("due"))
    return both.select(
        "*",
        F.col("seen_id").isNotNull().alias("found"),
        F.coalesce(F.col("content") == F.col("seen_content"), F.lit(False)).alias("same_content"),
        (~F.col("is_late") | F.coalesce(off <= DUE_WITHIN_US, F.lit(False))).alias("in_time"),
    ).withColumn("equal", F.expr("found AND same_content AND in_time"))


def _in_order(judged: DataFrame, dialect: Dialect) -> DataFrame:
    """Adds the column `misplaced` and, for the two checksums, the columns `expected` and `actual`."""
    from pyspark.sql import Window  # noqa: PLC0415 an extra
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    late, found, begun = F.col("is_late"), F.col("found"), F.col("begun")
    as_planned = Window.partitionBy("begun", "is_late").orderBy("rank")
    as_found = Window.partitionBy("found", "is_late").orderBy(*dialect.run_order())
    highest_before = F.max("rank").over(as_found.rowsBetween(Window.unboundedPreceding, -1))
    # A due time within the tolerance counts as the one that was asked for.
    due = F.when(F.col("in_time"), F.col("due")).otherwise(F.col("run_at"))
    planned = F.when(late, F.unix_micros("due")).otherwise(F.row_number().over(as_planned))
    present = F.when(late, F.unix_micros(due)).otherwise(F.row_number().over(as_found))
    # Sums of half of the hash can't overflow below 2^32 jobs.
    expected = F.shiftright(F.xxhash64("target", "content", planned), 32)
    actual = F.shiftright(F.xxhash64("seen_id", "seen_content", present), 32)
    return (
        judged.withColumn("misplaced", found & ~late & F.coalesce(highest_before > F.col("rank"), F.lit(False)))
        .withColumn("expected", F.when(~begun, expected))
        .withColumn("actual", F.when(found, actual))
    )
