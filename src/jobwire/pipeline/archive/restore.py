"""Restores archived jobs to a queue, as the finished jobs that they are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from jobwire import urls
from jobwire.errors import InvalidOption
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.spark.progress import Progress, silent
from jobwire.pipeline.stores.address import store_name
from jobwire.pipeline.stores.blocking import blocking_backend
from jobwire.pipeline.stores.boundary import open_store
from jobwire.pipeline.stores.dialect import dialect_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class RestoreResult:
    """The result of a restore."""

    run: str
    store: str
    queue: str
    found: int
    """Jobs of the archive that were asked for."""
    restored: int
    there_before: int
    missing: tuple[str, ...]
    """Ids that were asked for and are not in the archive."""
    private: tuple[str, ...] = ()
    """Rules of privacy under which some of the jobs were archived: what they cover is not restored as it was."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def restore(
    spark: SparkSession,
    lake: Lake,
    url: str,
    queue: str,
    *,
    ids: Sequence[str] | None = None,
    where: str | None = None,
    from_store: str | None = None,
    from_queue: str | None = None,
    progress: Progress = silent,
) -> RestoreResult:
    """Restores archived jobs, selected by their ids or by a condition in SQL over the archive's columns.

    In the protocol that they came from they get back every native field; in another one they get what both can store.
    Of a job that was archived more than once, the last state is restored. A job whose id the queue has stays as it is
    there.
    """
    if (ids is None) == (where is None):
        raise InvalidOption("ids", ids, "give either ids or a condition")
    store = store_name(url)
    origin = (from_store or store, from_queue or queue)
    with lake.run("restore", store=store, queue=queue) as record, blocking_backend(url) as control:
        control.ask(control.backend.register(queue))
        progress("restore", 0, None)
        jobs = _chosen(lake.table(spark, "archive"), origin, ids, where).persist()
        try:
            there = {row["id"] for row in jobs.select("id").collect()} if ids is not None else set[str]()
            rules = [row["private"] for row in jobs.where("private is not null").select("private").distinct().collect()]
            found, restored = _put(jobs.select(*JOBS.names), control.url, store, queue)
        finally:
            jobs.unpersist()
        progress("restore", found, found)
        result = RestoreResult(
            run=record.id,
            store=store,
            queue=queue,
            found=found,
            restored=restored,
            there_before=found - restored,
            missing=tuple(one for one in ids or () if one not in there),
            private=tuple(sorted({rule for text in rules for rule in json.loads(text)})),
        )
        record.rows_in, record.rows_out = found, restored
        record.note(**result.as_dict())
    return result


def _chosen(archived: DataFrame, origin: tuple[str, str], ids: Sequence[str] | None, where: str | None) -> DataFrame:
    from pyspark.errors import AnalysisException  # noqa: PLC0415 an extra
    from pyspark.sql import Window  # noqa: PLC0415 an extra
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    rows = archived.where((F.col("store") == origin[0]) & (F.col("queue") == origin[1]))
    if ids is not None:
        rows = rows.where(F.col("id").isin(*ids))
    elif where is not None:
        try:
            rows = rows.where(where)
        except AnalysisException as error:
            raise InvalidOption("where", where, f"must be a condition in SQL: {str(error).splitlines()[0]}") from error
    last = Window.partitionBy("id").orderBy(F.desc("finished_at"), F.desc("archived_at"))
    return rows.withColumn("_age", F.row_number().over(last)).where("_age = 1").select(*JOBS.names, "private")


def _put(jobs: DataFrame, url: str, store: str, queue: str) -> tuple[int, int]:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        address = urls.parse(url)
        dialect = dialect_of(address.protocol)
        opened = open_store(address, queue, store)
        try:
            for batch in batches:
                rows = cast("list[dict[str, Any]]", batch.select(["store", "queue", "id", "created_at"]).to_pylist())
                ids = [
                    job["id"]
                    if job["store"].partition("+")[0] == address.protocol
                    else dialect.id_of_moved(job["store"], job["queue"], job["id"], job["created_at"])
                    for job in rows
                ]
                named = batch.set_column(JOBS.names.index("id"), "id", pa.array(ids, pa.string()))
                new = opened.put_finished(pa.record_batch(named.columns, schema=JOBS.arrow))
                counts = [pa.array([count], pa.int64()) for count in (len(ids), new)]
                yield pa.record_batch(counts, names=["found", "new"])
        finally:
            opened.close()

    answers = jobs.mapInArrow(task, "found bigint, new bigint")
    [(found, new)] = answers.agg(F.sum("found"), F.sum("new")).collect()
    return found or 0, new or 0
