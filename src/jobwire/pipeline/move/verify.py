"""Compares what was moved with what the target holds: content, due time and order, read back from the store."""

# Arrow makes its compute functions when it is imported, unseen by the checker.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from jobwire import codec
from jobwire.pipeline.datasource.content import content_of
from jobwire.pipeline.datasource.read_with import read_with
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.move.judge import COMPARED, JUDGED, Judge
from jobwire.pipeline.move.plan import waiting_jobs
from jobwire.pipeline.move.running_move import RunningMove
from jobwire.pipeline.move.survey import is_late, that_wait
from jobwire.pipeline.stores.dialect import Dialect, dialect_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MANY = 500_000
"""Jobs that are not compared in memory."""
_SUMS = {
    **{name: name for name in ("equal", "begun", "missing", "changed", "due_changed")},
    "misplaced": "out_of_order",
    "expected": "checksum_expected",
    "actual": "checksum_found",
}
"""The columns of JUDGED that are added up, with the names of the sums."""
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
    """Compares manifest and target. If it is for good, the table `verified` holds the jobs that have arrived: only
    these may be removed from the source."""
    route, there, journal = running.route, running.there, running.journal
    path = running.path("verified" if for_good else "compared")
    compared = _compared(running.manifest(), _seen(running), dialect_of(route.to_protocol), journal.moving)
    judged = compared.mapInArrow(Judge(there.url, route.to_queue, journal.moving), JUDGED.ddl)
    running.lake.set_aside(path, judged.sortWithinPartitions("rank"))
    total = dict.fromkeys(_SUMS, 0)
    for batch in running.lake.files.batches(f"workings/{path}", JUDGED.arrow):
        for name in total:
            total[name] += pc.sum(batch.column(name), min_count=0).as_py()
    if not for_good:
        running.lake.files.remove(f"workings/{path}")
    return Verified(**{_SUMS[name]: count for name, count in total.items()})


@dataclass(frozen=True)
class Look:
    """Makes rows of SEEN from those of `jobs`: instead of a job's data and name, a digest. Runs in Spark's
    processes."""

    protocol: str
    queue: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        level = cache(dialect_of(self.protocol).level)
        for batch in batches:
            jobs = that_wait(batch)
            texts = zip(jobs.column("payload").to_pylist(), jobs.column("name").to_pylist(), strict=True)
            made = {
                "late": is_late(jobs),
                "level": pa.array([level(one) for one in jobs.column("priority").to_pylist()], pa.int64()),
                "content": pa.array([_content(payload, name, self.queue) for payload, name in texts], pa.string()),
            }
            kept = [made[name] if name in made else jobs.column(name) for name in SEEN.names]
            yield pa.record_batch(kept, schema=SEEN.arrow)


def _seen(running: RunningMove) -> DataFrame:
    route, there = running.route, running.there
    options = waiting_jobs(there, route.to_queue, route.to_store)
    return read_with(running.spark, options, Look(route.to_protocol, route.to_queue), SEEN)


def _content(payload: str | None, name: str | None, queue: str) -> str | None:
    if payload is None:
        return None
    return content_of(codec.loads(payload), name if name not in ("", queue) else None)


def _compared(manifest: DataFrame, seen: DataFrame, dialect: Dialect, moving: int) -> DataFrame:
    """Returns rows of COMPARED in one partition, in the order that Judge needs. One job may be there twice."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    wanted = manifest.select(
        "rank",
        F.col("id").alias("source"),
        "target",
        "scheduled",
        F.col("content").alias("wanted_content"),
        F.col("late").alias("is_late"),
        F.unix_micros("run_at").alias("due"),
    )
    # Spark can't know how many jobs will be read, and would take them for few.
    seen = seen.hint("shuffle_hash" if moving < _MANY else "merge")
    both = wanted.join(seen, F.col("target") == F.col("id"), "left").withColumn("found", F.col("id").isNotNull())
    ordered = both.repartition(1).sortWithinPartitions(
        "found", "is_late", F.when(~F.col("found"), F.col("rank")), *dialect.run_order()
    )
    renamed = {"content": F.col("wanted_content"), "seen_content": F.col("content")}
    renamed["seen_due"] = F.unix_micros("run_at")
    return ordered.select(*(renamed[name].alias(name) if name in renamed else F.col(name) for name in COMPARED.names))
