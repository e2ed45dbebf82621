"""Moves finished jobs: stores them in the target as finished, and purges them from the source if they are unchanged
there. Both steps can be repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa

from jobwire import urls
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.move.plan import jobs_of
from jobwire.pipeline.move.running_move import RunningMove
from jobwire.pipeline.stores.boundary import Stamp, open_store
from jobwire.pipeline.stores.dialect import dialect_of


def move_finished(running: RunningMove) -> tuple[int, int]:
    """Returns how many are in the target now, and how many of them were purged from the source."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    route = running.route
    if not route.include:
        return 0, 0
    states = ",".join(sorted(route.include))
    jobs = jobs_of(running.spark, running.here.url, route.queue, route.from_store, states)
    rows = jobs.where(F.col("state").isin(*route.include) & F.col("malformed").isNull()).dropDuplicates(["id"])
    from_url, to_url = running.here.url, running.there.url

    def carry(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        target, source = urls.parse(to_url), urls.parse(from_url)
        dialect = dialect_of(target.protocol)
        there_store = open_store(target, route.to_queue, route.to_store)
        here_store = open_store(source, route.queue, route.from_store)
        try:
            for batch in batches:
                finished = cast("list[dict[str, Any]]", batch.to_pylist())
                ids = [
                    dialect.id_of_moved(route.from_store, route.queue, job["id"], job["created_at"]) for job in finished
                ]
                renamed = batch.set_column(JOBS.names.index("id"), "id", pa.array(ids, pa.string()))
                there_store.put_finished(pa.record_batch(renamed.columns, schema=JOBS.arrow))
                held = set(there_store.present(ids))
                stamps = [
                    Stamp(job["id"], job["state"], job["fingerprint"])
                    for job, identity in zip(finished, ids, strict=True)
                    if identity in held
                ]
                purged = here_store.purge(stamps)
                counts = [len(stamps), len(purged.removed)]
                yield pa.record_batch([pa.array([count], pa.int64()) for count in counts], names=["put", "purged"])
        finally:
            there_store.close()
            here_store.close()

    [(put, purged)] = rows.mapInArrow(carry, "put bigint, purged bigint").agg(F.sum("put"), F.sum("purged")).collect()
    return put or 0, purged or 0
