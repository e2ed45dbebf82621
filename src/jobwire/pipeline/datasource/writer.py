"""A DataFrame becomes jobs, in bulk. Spark may run a task twice, or run it half and again: every job has an id that the
second attempt finds again, and the store adds it only if it isn't there.

A failed task can't be rolled back, so what it wrote stays; a write is complete once it has succeeded, and those who
need to know count afterwards (see load.py and move.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from jobwire import codec, urls
from jobwire.backend import Added, Backend, PreparedJob
from jobwire.connection import load_backend
from jobwire.errors import InvalidOption, JobwireError, StoreUnavailable
from jobwire.options import NewJob, Unique
from jobwire.pipeline.datasource.options import SourceOptions
from jobwire.pipeline.stores.address import reached
from jobwire.pipeline.stores.dialect import Dialect, dialect_of
from jobwire.pipeline.stores.ids import digest
from jobwire.preparing import prepare

CHUNK = 1_000
PATIENCE = 60.0
"""Seconds for which a task waits for a store that went away before it gives up its attempt."""
JOB_COLUMNS = ("id", "name", "payload", "priority", "attempts", "run_at", "unique_key", "options")
"""Columns with a meaning. Without a `payload`, all other columns of a row together are the job's data."""

_log = logging.getLogger("jobwire.pipeline")


@dataclass
class Written(WriterCommitMessage):
    """What one task did."""

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
    """With a run of its own, if none was named: the same for all tasks of this write."""
    return options if options.run else replace(options, run=uuid.uuid4().hex)


def check_columns(names: Sequence[str]) -> None:
    """Raise unless rows with these columns can become jobs."""
    if "payload" in names:
        unknown = sorted(set(names) - set(JOB_COLUMNS))
        if unknown:
            rule = f"has no meaning beside `payload`: drop it, or use {', '.join(JOB_COLUMNS)}"
            raise InvalidOption("column", unknown[0], rule)
    elif not set(names) - set(JOB_COLUMNS):
        raise InvalidOption("columns", list(names), "must hold `payload`, or columns that make up the job's data")


async def _write(options: SourceOptions, url: str, scope: str, batches: Iterator[pa.RecordBatch]) -> Written:
    backend = load_backend(urls.parse(url))
    written = Written(0, 0)
    seen: Counter[str] = Counter()
    try:
        await backend.open()
        for batch in batches:
            for start in range(0, batch.num_rows, CHUNK):
                rows = cast("list[dict[str, Any]]", batch.slice(start, CHUNK).to_pylist())
                jobs = [job_of(backend, options, row, scope, seen) for row in rows]
                for answer in await add_patiently(backend, options.queue, jobs):
                    if answer.refused:
                        written.refused += 1
                    else:
                        written.added += 1
    finally:
        await backend.close()
    return written


async def add_patiently(backend: Backend, queue: str, jobs: Sequence[PreparedJob]) -> Sequence[Added]:
    """The store's answers, in order. A store that went away is waited for."""
    until = time.monotonic() + PATIENCE
    pause = 0.1
    while True:
        try:
            return await backend.add(queue, jobs)
        except StoreUnavailable as error:
            # Some of the jobs may have arrived: their ids keep them from being added again.
            if time.monotonic() > until:
                raise
            _log.warning("writing to %s: %s; trying again", queue, error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5.0)


def job_of(
    backend: Backend, options: SourceOptions, row: Mapping[str, Any], scope: str, seen: Counter[str]
) -> PreparedJob:
    """The job that a row stands for. Raises JobwireError with the row's id, the field and the rule."""
    given = row.get("id")
    try:
        data = _data(row)
        if given is None:
            content = codec.dumps([data, *(str(row.get(name)) for name in JOB_COLUMNS[1:])]).decode()
            seen[content] += 1
            given = digest(scope, content, str(seen[content]))
        new = new_job(dialect_of(options.address.protocol), row, str(given), data)
        return prepare(backend, options.queue, new, options.size_limit)
    except JobwireError as error:
        raise InvalidOption("row", given if given is not None else dict(row), str(error)) from error


def new_job(dialect: Dialect, row: Mapping[str, Any], given: str, data: Any) -> NewJob:
    """Returns what to ask the protocol for, for a row with this id and data."""
    more = cast("dict[str, Any]", codec.loads(row["options"].encode())) if row.get("options") else {}
    run_at = row.get("run_at")
    if isinstance(run_at, datetime) and run_at.tzinfo is None:
        run_at = run_at.replace(tzinfo=UTC)
    key = row.get("unique_key")
    return dialect.job_with_id(
        dialect.native_id(given),
        data,
        name=row.get("name"),
        priority=row.get("priority"),
        run_at=run_at,
        attempts=row.get("attempts"),
        unique=Unique(key) if key else None,
        **more,
    )


def _data(row: Mapping[str, Any]) -> Any:
    if "payload" not in row:
        return {name: plain(value) for name, value in row.items() if name not in JOB_COLUMNS}
    payload = row["payload"]
    if payload is None:
        return None
    if not isinstance(payload, str):
        raise InvalidOption("payload", payload, "must be a JSON text")
    return codec.loads(payload.encode())


def plain(value: Any) -> Any:
    """A value of a DataFrame as JSON can hold it: times and dates as ISO 8601, binary refused by the codec."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [plain(item) for item in cast("list[Any]", value)]
    return value
