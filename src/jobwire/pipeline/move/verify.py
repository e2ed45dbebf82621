"""Whether what was moved is in the target as it should be: content, due time and order, read back from the store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from jobwire import codec
from jobwire.pipeline.adding import with_presence
from jobwire.pipeline.control import Control
from jobwire.pipeline.move.course import Course
from jobwire.pipeline.move.plan import jobs_of
from jobwire.pipeline.move.route import Route
from jobwire.pipeline.move.survey import content_of
from jobwire.pipeline.schemas import JOBS
from jobwire.pipeline.stores.dialect import Dialect, dialect_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DUE_WITHIN_US = 1000
"""A due time may differ by this much: some stores count it from the whole millisecond of the add."""
_SEEN = JOBS.without([name for name in JOBS.names if name not in ("id", "native_state", "position", "created_at")])
SEEN = _SEEN.plus("run_at timestamp", "late boolean", "level bigint", "content string")


@dataclass(frozen=True)
class Verified:
    """What the comparison of manifest and target found. The checksums are sums over the jobs' ids, contents and
    places in the order; both sides have been read, and agree if the sums do."""

    equal: int
    begun: int
    """In the target, but no longer waiting: somebody works there already."""
    missing: int
    changed: int
    out_of_order: int
    checksum_expected: int
    checksum_found: int

    @property
    def sound(self) -> bool:
        return not (self.missing or self.changed or self.out_of_order)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "sound": self.sound}


def verify(course: Course, *, for_good: bool = True) -> Verified:
    """Compare, and, if it is for good, write down which jobs have arrived: these alone may leave the source."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    route, there = course.route, course.there
    compared = _compared(course.manifest(), _seen(course.spark, route, there)).persist()
    try:
        lost = compared.where("NOT found").select("id", "target", F.lit(None).cast("string").alias("refused"))
        begun = with_presence(lost, there.url, route.to_queue).where("held").select("id", F.lit(True).alias("begun"))
        judged = compared.join(begun, "id", "left").withColumn("begun", F.coalesce("begun", F.lit(False)))
        if for_good:
            arrived = judged.where("equal OR begun").select("rank", "id", "target", "scheduled")
            course.lake.set_aside(course.path("verified"), arrived.coalesce(1))
        total = judged.agg(
            F.count_if("equal").alias("equal"),
            F.count_if("begun").alias("begun"),
            F.count_if(~F.col("found") & ~F.col("begun")).alias("missing"),
            F.count_if(F.col("found") & ~F.col("equal")).alias("changed"),
            F.sum("expected").alias("expected"),
            F.sum("actual").alias("actual"),
        ).collect()[0]
        wrong = _out_of_order(compared, dialect_of(route.to_protocol))
    finally:
        compared.unpersist()
    return Verified(
        equal=total["equal"],
        begun=total["begun"],
        missing=total["missing"],
        changed=total["changed"],
        out_of_order=wrong,
        checksum_expected=int(total["expected"] or 0),
        checksum_found=int(total["actual"] or 0),
    )


def _seen(spark: SparkSession, route: Route, there: Control) -> DataFrame:
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
    return rows.dropDuplicates(["id"]).select(*wanted).mapInArrow(look, SEEN.ddl)


def _content(payload: str | None, name: str | None, queue: str) -> str | None:
    if payload is None:
        return None
    return content_of(codec.loads(payload), name if name not in ("", queue) else None)


def _compared(manifest: DataFrame, seen: DataFrame) -> DataFrame:
    """A row per job of the manifest with what was found of it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    wanted = manifest.select(
        "rank", "id", "target", "scheduled", "content", F.col("late").alias("is_late"), F.col("run_at").alias("due")
    )
    there = seen.withColumnsRenamed({"id": "seen_id", "content": "seen_content"})
    both = wanted.join(there, F.col("target") == F.col("seen_id"), "left")
    off = F.abs(F.unix_micros("run_at") - F.unix_micros("due"))
    in_time = ~F.col("is_late") | F.coalesce(off <= DUE_WITHIN_US, F.lit(False))
    found = F.col("seen_id").isNotNull()
    equal = found & F.coalesce(F.col("content") == F.col("seen_content"), F.lit(False)) & in_time
    # Sums of half of the hash can't overflow below 2^32 jobs.
    expected = F.shiftright(F.xxhash64("target", "content", "rank"), 32)
    actual = F.when(found, F.shiftright(F.xxhash64("seen_id", "seen_content", "rank"), 32)).otherwise(0)
    return both.select(
        "rank",
        F.col("id"),
        "target",
        "scheduled",
        found.alias("found"),
        equal.alias("equal"),
        expected.alias("expected"),
        actual.alias("actual"),
        "is_late",
        "late",
        "level",
        "native_state",
        "position",
        "created_at",
        "run_at",
    )


def _out_of_order(compared: DataFrame, dialect: Dialect) -> int:
    """How many of the jobs that are ready stand behind one that should run after them."""
    ready = compared.where("found AND NOT is_late").repartition(1).sortWithinPartitions(*dialect.run_order())

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        highest, wrong = -1, 0
        for batch in batches:
            for rank in cast("list[int]", batch.column(0).to_pylist()):
                wrong += rank < highest
                highest = max(highest, rank)
        yield pa.record_batch([pa.array([wrong], pa.int64())], names=["wrong"])

    rows: list[Any] = ready.select("rank").mapInArrow(count, "wrong bigint").collect()
    return sum(row["wrong"] for row in rows)
