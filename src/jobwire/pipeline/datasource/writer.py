"""Adds a DataFrame's rows to a queue as jobs, in bulk: those of a batch, or those of a stream.

Spark may run a task twice, or in part and again, and a stream its last batch. Every job has an id that the second
attempt finds again, and the store adds it only if it isn't there. A failed task can't be rolled back, so what it wrote
stays. A write is complete once it has succeeded; loads and moves check afterwards that every job is there.

The id of a row without one is made from its content and from the scope in which equal rows are one and the same: the
named run, or the stream and the batch, both of which a second attempt has in common with the first. Tasks can't see
each other's rows, so equal rows in two partitions would become one job. The driver finds them when all tasks have
ended, and the write fails: see `refuse_scattered`. Without a name, a write is its own scope, and each partition in it.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from jobwire import urls
from jobwire.boundary import Added, Backend, PreparedJob
from jobwire.connection import load_backend
from jobwire.counted import counted
from jobwire.errors import InvalidOption, StoreUnavailable
from jobwire.model import AddStatus
from jobwire.pipeline.datasource.json_forms import rows_of
from jobwire.pipeline.datasource.row_to_job import Copies, check_columns, job_of
from jobwire.pipeline.datasource.source_options import SourceOptions
from jobwire.pipeline.stores.address import reached

CHUNK = 1_000
PATIENCE = 60.0
"""Seconds for which a task waits for a store that is unavailable before its attempt fails."""
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Spark's names for the id of a stream, which its checkpoint keeps, and for the number of a batch."""
_log = logging.getLogger("jobwire.pipeline")


def _no_contents() -> array[int]:
    return array("q")


@dataclass
class Written(WriterCommitMessage):
    """The result of one task."""

    added: int
    refused: int
    contents: array[int] = field(default_factory=_no_contents)
    """The contents of rows without ids, where other partitions must not hold the same."""


class JobWriter(DataSourceArrowWriter):
    """Adds the rows of a DataFrame to a queue."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = _checked(options, schema)
        self._nonce = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        run = self._options.run
        if run is not None:
            return _written(self._options, run, iterator)
        from pyspark import TaskContext  # noqa: PLC0415 only known in a task

        context = TaskContext.get()
        written = _written(self._options, f"{self._nonce}/{context.partitionId() if context else 0}", iterator)
        return Written(written.added, written.refused)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        refuse_scattered(messages)


class JobStreamWriter(DataSourceStreamArrowWriter):
    """Adds the rows of a stream to a queue. A batch that is run again, after a crash, adds what is missing."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        if options.run is not None:
            raise InvalidOption("run", options.run, "can't be given for a stream, which its checkpoint identifies")
        self._options = _checked(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        from pyspark import TaskContext  # noqa: PLC0415 only known in a task

        context = cast("TaskContext", TaskContext.get())
        scope = f"{context.getLocalProperty(_QUERY)}/{context.getLocalProperty(_BATCH)}"
        return _written(self._options, scope, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 Spark's name
        refuse_scattered(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 Spark's name
        """Does nothing: the batch is run again, and finds the jobs that it has added."""


def refuse_scattered(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Raises InvalidOption if a content without an id was in several partitions: only the copies of one of them are in
    the queue."""
    written = [message for message in messages if isinstance(message, Written)]
    contents = np.concatenate([np.frombuffer(message.contents, dtype=np.int64) for message in written] or [np.empty(0)])
    _, partitions = np.unique(contents, return_counts=True)
    scattered = int((partitions > 1).sum())
    if scattered:
        raise InvalidOption(
            "rows",
            f"{counted(scattered, 'row')} in several partitions",
            "that are equal and have no `id` must be in one partition: add a column `id`, or write "
            "`df.repartition(*df.columns)`, which adds what is missing",
        )


def _checked(options: SourceOptions, schema: StructType) -> SourceOptions:
    """Returns the options if rows of this schema can be written with them."""
    check_columns(schema.names)
    _ = options.queue
    return options


def _written(options: SourceOptions, scope: str, batches: Iterator[pa.RecordBatch]) -> Written:
    with reached(options.url) as url:
        return asyncio.run(_write(options, url, Copies(scope), batches))


async def _write(options: SourceOptions, url: str, copies: Copies, batches: Iterator[pa.RecordBatch]) -> Written:
    backend = load_backend(urls.parse(url))
    written = Written(0, 0)
    try:
        await backend.open()
        await backend.register(options.queue)
        for batch in batches:
            for start in range(0, batch.num_rows, CHUNK):
                rows = rows_of(batch.slice(start, CHUNK))
                jobs = [job_of(backend, options, row, copies.id_of) for row in rows]
                for answer in await add_patiently(backend, options.queue, jobs):
                    if answer.status is AddStatus.ADDED:
                        written.added += 1
                    else:
                        written.refused += 1
    finally:
        await backend.close()
    written.contents = copies.contents
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
