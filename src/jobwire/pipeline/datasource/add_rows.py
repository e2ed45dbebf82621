"""Adds rows of a DataFrame to a queue and returns the store's answer to each, which a plain write can't return.

A task may run twice, or in part and again. The ids are the rows' own, and a store adds an id once, so a second attempt
changes at most the answer, from "added" to "there before".
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from jobwire import urls
from jobwire.boundary import Added, Backend, PreparedJob
from jobwire.connection import load_backend
from jobwire.errors import InvalidOption
from jobwire.model import AddStatus
from jobwire.pipeline.datasource.content import content_of
from jobwire.pipeline.datasource.writer import CHUNK, add_patiently
from jobwire.pipeline.lake.schemas import columns
from jobwire.pipeline.stores.address import reached
from jobwire.pipeline.stores.boundary import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JobOf = Callable[[Backend, Mapping[str, Any]], PreparedJob]
"""Makes the job of a row. It is pickled for Spark's processes, so it is an object of a module."""

ANSWERS = columns(
    "id string",  # the row's
    "target string",  # the id that the job has in the queue
    "refused string",  # why the store made no new job; null: it did
)
REFUSALS = columns("refused string", "count bigint")
OTHER_CONTENT = "a job with this id and another payload is there"
"""The reason of a refusal, if contents are compared."""


def added(rows: DataFrame, url: str, queue: str, job_of: JobOf, *, compare: bool = False) -> DataFrame:
    """Adds the rows when it is evaluated. Returns the answers in the columns of ANSWERS. A partition is added in its
    own order, by one task at a time. With `compare`, jobs whose ids were there are read and compared."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with reached(url) as reachable:
            yield from _stepped(_added(reachable, queue, job_of, batches, compare=compare))

    return rows.mapInArrow(task, ANSWERS.ddl)


def refusals(rows: DataFrame, url: str, queue: str, job_of: JobOf) -> DataFrame:
    """Adds the rows when it is evaluated, as `added` does. Returns in the columns of REFUSALS how many of each portion
    were refused: where only that is wanted, Spark need not get the other answers."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with reached(url) as reachable:
            for answers in _stepped(_added(reachable, queue, job_of, batches, compare=False)):
                found = Counter(reason for reason in answers.column("refused").to_pylist() if reason is not None)
                counts = [pa.array(found.keys(), pa.string()), pa.array(found.values(), pa.int64())]
                yield pa.record_batch(counts, schema=REFUSALS.arrow)

    return rows.mapInArrow(task, REFUSALS.ddl)


async def _added(
    url: str, queue: str, job_of: JobOf, batches: Iterator[pa.RecordBatch], *, compare: bool
) -> AsyncIterator[pa.RecordBatch]:
    backend = load_backend(urls.parse(url))
    under_way: asyncio.Task[pa.RecordBatch] | None = None
    try:
        await backend.open()
        for batch in batches:
            for start in range(0, batch.num_rows, CHUNK):
                # The store adds one portion while the jobs of the next one are made.
                rows = cast("list[dict[str, Any]]", batch.slice(start, CHUNK).to_pylist())
                jobs = [job_of(backend, row) for row in rows]
                if under_way is not None:
                    yield await under_way
                under_way = asyncio.create_task(_answers(backend, queue, rows, jobs, compare=compare))
                await asyncio.sleep(0)  # it is sent before the next jobs are made
        if under_way is not None:
            yield await under_way
    finally:
        if under_way is not None:  # what it adds after a failure, the next attempt of the task finds
            await asyncio.gather(under_way, return_exceptions=True)
        await backend.close()


async def _answers(
    backend: Backend, queue: str, rows: Sequence[Mapping[str, Any]], jobs: Sequence[PreparedJob], *, compare: bool
) -> pa.RecordBatch:
    refused = await _refusals(backend, queue, jobs)
    if compare:
        refused = await _compared(backend, queue, jobs, refused)
    return pa.record_batch(
        [
            pa.array([row["id"] for row in rows], pa.string()),
            pa.array([identity_of(job) for job in jobs], pa.string()),
            pa.array(refused, pa.string()),
        ],
        schema=ANSWERS.arrow,
    )


async def _refusals(backend: Backend, queue: str, jobs: Sequence[PreparedJob]) -> list[str | None]:
    """Adds the jobs. Returns for each why the store made no new job, or None.

    A backend refuses all jobs of a call if the queue does not take one of them. Halves are then added one after the
    other, until only such jobs are left over.
    """
    try:
        return [_refusal(answer) for answer in await add_patiently(backend, queue, jobs)]
    except InvalidOption as error:
        if len(jobs) == 1:
            return [str(error)]
    middle = len(jobs) // 2
    return [*await _refusals(backend, queue, jobs[:middle]), *await _refusals(backend, queue, jobs[middle:])]


async def _compared(
    backend: Backend, queue: str, jobs: Sequence[PreparedJob], refused: Sequence[str | None]
) -> list[str | None]:
    """Returns the refusals, with OTHER_CONTENT where the queue holds a job of the same id and another payload."""
    doubtful = [number for number, reason in enumerate(refused) if reason is not None]
    there = await backend.get(queue, [identity_of(jobs[number]) for number in doubtful]) if doubtful else ()
    found = list(refused)
    for number, job in zip(doubtful, there, strict=True):
        if job is not None and content_of(job.data, None) != content_of(jobs[number].new.data, None):
            found[number] = OTHER_CONTENT
    return found


def _refusal(answer: Added) -> str | None:
    return None if answer.status is AddStatus.ADDED else answer.status.value


def identity_of(job: PreparedJob) -> str:
    """Returns the id that the job asks for."""
    return str(job.new.id)


def _stepped(source: AsyncIterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Iterates over an asynchronous iterator in a process that has no event loop of its own."""
    with asyncio.Runner() as runner:
        try:
            while True:
                try:
                    yield runner.run(_next(source))
                except StopAsyncIteration:
                    return
        finally:
            runner.run(_closed(source))


async def _next(source: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch:
    return await anext(source)


async def _closed(source: Any) -> None:
    await source.aclose()


def with_presence(answers: DataFrame, url: str, queue: str) -> DataFrame:
    """Adds to ANSWERS the column `held`: whether the queue holds the target, in any state."""
    schema = ANSWERS.plus("held boolean")

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with reached(url) as reachable:
            store = open_store(urls.parse(reachable), queue, "")
            try:
                for batch in batches:
                    asked: Sequence[str] = batch.column("target").to_pylist()
                    held = set(store.present(asked))
                    column = pa.array([one in held for one in asked], pa.bool_())
                    yield pa.record_batch([*batch.columns, column], schema=schema.arrow)
            finally:
                store.close()

    return answers.mapInArrow(task, schema.ddl)
