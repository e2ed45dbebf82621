"""Adds a DataFrame's rows to a queue as jobs, in bulk.

Spark may run a task twice, or in part and again. Every job has an id that the second attempt finds again, and the store
adds it only if it isn't there. A failed task can't be rolled back, so what it wrote stays. A write is complete once it
has succeeded; loads and moves check afterwards that every job is there.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from jobwire import urls
from jobwire.boundary import Added, Backend, PreparedJob
from jobwire.connection import load_backend
from jobwire.errors import StoreUnavailable
from jobwire.model import AddStatus
from jobwire.pipeline.datasource.row_to_job import check_columns, job_of
from jobwire.pipeline.datasource.source_options import SourceOptions
from jobwire.pipeline.stores.address import reached

CHUNK = 1_000
PATIENCE = 60.0
"""Seconds for which a task waits for a store that is unavailable before its attempt fails."""
_log = logging.getLogger("jobwire.pipeline")


@dataclass
class Written(WriterCommitMessage):
    """The result of one task."""

    added: int
    refused: int


class JobWriter(DataSourceArrowWriter):
    """Adds the rows of a DataFrame to a queue."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = replace_run(options)
        check_columns(schema.names)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        from pyspark import TaskContext  # noqa: PLC0415 only known in a task

        context = TaskContext.get()
        scope = f"{self._options.run}/{context.partitionId() if context is not None else 0}"
        with reached(self._options.url) as url:
            return asyncio.run(_write(self._options, url, scope, iterator))


def replace_run(options: SourceOptions) -> SourceOptions:
    """Returns the options with a run of its own if none was named. It is the same for all tasks of this write."""
    return options if options.run else replace(options, run=uuid.uuid4().hex)


async def _write(options: SourceOptions, url: str, scope: str, batches: Iterator[pa.RecordBatch]) -> Written:
    backend = load_backend(urls.parse(url))
    written = Written(0, 0)
    seen: Counter[str] = Counter()
    try:
        await backend.open()
        await backend.register(options.queue)
        for batch in batches:
            for start in range(0, batch.num_rows, CHUNK):
                rows = cast("list[dict[str, Any]]", batch.slice(start, CHUNK).to_pylist())
                jobs = [job_of(backend, options, row, scope, seen) for row in rows]
                for answer in await add_patiently(backend, options.queue, jobs):
                    if answer.status is AddStatus.ADDED:
                        written.added += 1
                    else:
                        written.refused += 1
    finally:
        await backend.close()
    return written


async def add_patiently(backend: Backend, queue: str, jobs: Sequence[PreparedJob]) -> Sequence[Added]:
    """Returns the store's answers, in order. Waits for a store that is unavailable."""
    until = time.monotonic() + PATIENCE
    pause = 0.1
    while True:
        try:
            return await backend.add(queue, jobs)
        except StoreUnavailable as error:
            # Some of the jobs may have arrived: their ids keep them from being added again.
            if time.monotonic() > until:
                raise
            _log.warning("adding jobs to %s failed: %s; trying again in %.1f s", queue, error, pause)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5.0)
