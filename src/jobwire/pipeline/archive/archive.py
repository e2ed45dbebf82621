"""Archives finished jobs: copies them whole into the lake, and purges from the queue those that were read back equal.

What is purged is taken from what was read back out of the lake, and the store itself compares state and fingerprint in
the step that removes a job. So a job that was retried, finished again or changed since stays. A crash between any two
steps loses nothing. Running the command again archives nothing twice, as the lake knows a job by store, queue, id and
fingerprint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from jobwire import urls
from jobwire.counted import counted
from jobwire.errors import InvalidOption, JobwireError
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.privacy.record import record_rules
from jobwire.pipeline.privacy.rules import EVERYTHING_KEPT, Privacy, QueueRules
from jobwire.pipeline.spark.progress import Progress, silent
from jobwire.pipeline.spark.utc import utc_day
from jobwire.pipeline.stores.address import reached, store_name
from jobwire.pipeline.stores.boundary import Stamp, open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FINISHED = "completed,failed,cancelled"
_STAMPS = 500
_KEY = ("store", "queue", "id", "fingerprint")
_COUNTED = "removed bigint, kept bigint"


@dataclass(frozen=True)
class ArchiveResult:
    """The result of an archive."""

    run: str
    store: str
    queue: str
    before: str
    read: int
    """Finished jobs that the queue held from before the time."""
    archived: int
    there_before: int
    """Jobs among those read that the lake had already."""
    malformed: int
    """Finished jobs that can't be read. They stay in the queue."""
    verified: int
    purged: int
    private: tuple[str, ...]
    """The rules of privacy that the jobs were archived under."""
    kept: int
    """Jobs that the store did not purge: changed since they were archived, or still needed by a parent."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def archive(
    spark: SparkSession,
    lake: Lake,
    url: str,
    queue: str,
    before: datetime,
    *,
    purge: bool = False,
    privacy: Privacy = EVERYTHING_KEPT,
    progress: Progress = silent,
) -> ArchiveResult:
    """Copies jobs that finished before the time into the lake's table `archive`, reads them back and compares. With
    `purge`, removes from the queue exactly those that were found equal and are unchanged in the store.

    What the rules of `privacy` cover is not archived, and is lost once the job is purged. The rules are kept with each
    job."""
    if before.tzinfo is None:
        raise InvalidOption("before", before, "must carry a time zone")
    store = store_name(url)
    with (
        lake.files.locked("archive"),
        lake.run("archive", store=store, queue=queue, before=before.isoformat()) as record,
        reached(url) as reachable,
    ):
        record_rules(lake, privacy)
        rules = privacy.of_queue(queue)
        source = _Source(reachable, store, queue, before.astimezone(UTC), privacy)
        progress("read", 0, None)
        found = source.finished(spark).persist()
        try:
            total, malformed = _totals(found)
            progress("read", total, total)
            jobs = found.where("malformed IS NULL")
            progress("archive", 0, total)
            archived = _add_new(lake, jobs, record.id, rules) if total else 0
            progress("archive", archived, total)
            equal = _equal(lake, jobs) if total else None
            verified = equal.count() if equal is not None else 0
            progress("verify", verified, total)
            if verified != total:
                raise JobwireError(
                    f"{total - verified:,} of {counted(total, 'job')} could not be read back unchanged; none was purged"
                )
            purged, kept = 0, 0
            if purge and equal is not None:
                progress("purge", 0, verified)
                purged, kept = source.purge(equal)
                progress("purge", purged, verified)
        finally:
            found.unpersist()
        result = ArchiveResult(
            run=record.id,
            store=store,
            queue=queue,
            before=before.isoformat(),
            read=total,
            archived=archived,
            there_before=total - archived,
            malformed=malformed,
            verified=verified,
            purged=purged,
            kept=kept,
            private=() if rules is None else tuple(rules.described),
        )
        record.rows_in, record.rows_out = total, archived
        record.note(**result.as_dict())
    return result


@dataclass(frozen=True)
class _Source:
    """The queue that is archived."""

    url: str
    store: str
    queue: str
    before: datetime
    privacy: Privacy

    def finished(self, spark: SparkSession) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        options = {
            "url": self.url,
            "queue": self.queue,
            "store": self.store,
            "states": FINISHED,
            **self.privacy.options,
        }
        reader = spark.read.format("jobwire").options(**options)
        jobs = reader.option("finished_before", self.before.isoformat()).load()
        ended = F.col("finished_at") < F.lit(self.before)
        wanted = F.col("state").isin(*FINISHED.split(",")) & (ended | F.col("malformed").isNotNull())
        # A job that moves while it is read may be read twice.
        return jobs.where(wanted).dropDuplicates(["id", "fingerprint"])

    def purge(self, equal: DataFrame) -> tuple[int, int]:
        """Returns how many jobs the store removed, and how many it kept."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

        url, queue = self.url, self.queue

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            store = open_store(urls.parse(url), queue, "")
            try:
                for batch in batches:
                    stamps = [Stamp(**row) for row in cast("list[dict[str, str]]", batch.to_pylist())]
                    for start in range(0, len(stamps), _STAMPS):
                        purged = store.purge(stamps[start : start + _STAMPS])
                        counts = [len(purged.removed), len(purged.kept)]
                        arrays = [pa.array([count], pa.int64()) for count in counts]
                        yield pa.record_batch(arrays, names=["removed", "kept"])
            finally:
                store.close()

        # Evaluated once and to the end. The result is only counts, and a task that is tried again would count the jobs
        # that its first attempt removed among the kept.
        done = equal.select("id", "state", "fingerprint").mapInArrow(task, _COUNTED)
        [(removed, kept)] = done.agg(F.sum("removed"), F.sum("kept")).collect()
        return removed or 0, kept or 0


def _totals(found: DataFrame) -> tuple[int, int]:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    [(total, malformed)] = found.agg(F.count_if(F.col("malformed").isNull()), F.count("malformed")).collect()
    return total, malformed


def _add_new(lake: Lake, jobs: DataFrame, run: str, rules: QueueRules | None) -> int:
    """Appends the jobs that the archive does not have. Returns how many there were."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    dated = jobs.withColumn("day", utc_day(F.col("finished_at")))
    days = [str(row["day"]) for row in dated.select("day").distinct().collect()]
    there = lake.table(jobs.sparkSession, "archive", days).select(*_KEY)
    new = dated.join(there, [*_KEY], "left_anti").withColumn("archived_at", F.current_timestamp())
    if new.isEmpty():
        return 0
    private = F.lit(None if rules is None else json.dumps(rules.described)).cast("string")
    return lake.append("archive", new.withColumn("run", F.lit(run)).withColumn("private", private), run)


def _equal(lake: Lake, jobs: DataFrame) -> DataFrame:
    """Returns the archived jobs whose columns were all read back as they were read from the queue."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    everything = F.xxhash64(*(name for name in JOBS.names if name != "position")).alias("content")
    days = [str(row["day"]) for row in jobs.select(utc_day(F.col("finished_at")).alias("day")).distinct().collect()]
    archived = lake.table(jobs.sparkSession, "archive", days)
    back = archived.select(*_KEY, "state", everything).dropDuplicates([*_KEY])
    return back.join(jobs.select(*_KEY, everything), [*_KEY, "content"], "left_semi")
