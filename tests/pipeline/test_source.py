"""Queues as Spark tables and streams, on every protocol."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.datasource import EqualTo, In
from pyspark.sql.functions import col

from awaiting import eventually
from jobwire import ActiveJob, NewJob, Queue, State, Worker
from jobwire.pipeline.datasource.pushdown import narrowed
from jobwire.pipeline.lake.schemas import EVENTS, JOBS
from jobwire.pipeline.stores.address import store_name
from jobwire.pipeline.stores.boundary import Wanted

pytestmark = pytest.mark.xdist_group("spark")


def read(spark: Any, url: str, table: str = "jobs", **options: Any) -> Any:
    return spark.read.format("jobwire").options(url=url, queue="mail", table=table, **options).load()


async def handle(job: ActiveJob) -> int:
    if job.data["n"] % 10 == 0:
        raise ValueError(f"{job.data['n']} ends with a zero")
    return int(job.data["n"]) * 2


async def work_off(url: str, numbers: range) -> None:
    """Add a job per number and have all of them run: those that end with a zero fail."""
    async with Queue("mail", url) as queue:
        await queue.add_many([NewJob({"n": number}) for number in numbers])
        async with Worker("mail", handle, url, concurrency=10):
            await eventually(lambda: idle(queue), within=60)


async def idle(queue: Queue) -> bool:
    counts = await queue.counts()
    return not counts[State.WAITING] and not counts[State.ACTIVE]


async def test_all_jobs_are_read_as_the_queue_shows_them(spark: Any, url: str) -> None:
    await work_off(url, range(1, 61))
    async with Queue("mail", url) as queue:
        await queue.add_many([NewJob({"n": number}) for number in range(100, 140)])
        await queue.add({"n": 7}, delay=3600)
        shown = {state: {job.id: job for job in await queue.jobs(state, limit=1000)} for state in State}
    frame = read(spark, url, parts=3)
    assert frame.schema == JOBS.spark
    rows = {row["id"]: row for row in frame.collect()}
    assert len(rows) == frame.count() == 101
    for state, jobs in shown.items():
        for job in jobs.values():
            row = rows[job.id]
            assert row["state"] == state, job
            assert (json.loads(row["payload"]), row["queue"], row["malformed"]) == (job.data, "mail", None)
            assert (row["attempts_made"], row["error"]) == (job.attempts_made, job.error)
            assert utc(row["created_at"]) == job.created_at
            assert utc(row["finished_at"]) == job.finished_at
            if state is State.COMPLETED:
                assert json.loads(row["result"]) == job.result
    assert {row["store"] for row in rows.values()} == {store_name(url)}


async def test_options_and_filters_read_no_more_than_was_asked_for(spark: Any, url: str) -> None:
    await work_off(url, range(1, 31))
    failed = read(spark, url, states="failed")
    assert {json.loads(row["payload"])["n"] for row in failed.collect()} == {10, 20, 30}
    pushed = read(spark, url, pushdown="true").filter("state = 'failed' and name = 'mail'")
    assert pushed.count() == 3
    assert read(spark, url, states="completed").count() == 27


async def test_an_empty_queue_is_an_empty_table(spark: Any, url: str) -> None:
    async with Queue("mail", url) as queue:
        await queue.counts()
        await queue.add(1)
        await queue.admin.drain()
    assert read(spark, url).count() == 0


async def test_the_stream_tells_each_event_once_over_many_runs(spark: Any, url: str, tmp_path: Path) -> None:
    def ingest() -> None:
        stream = spark.readStream.format("jobwire").options(url=url, queue="mail", table="events", max_rows=100).load()
        writing = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writing.trigger(availableNow=True).start(str(tmp_path / "events"))
        query.awaitTermination()

    await work_off(url, range(1, 31))
    ingest()
    await work_off(url, range(31, 61))
    ingest()
    ingest()
    events = spark.read.parquet(str(tmp_path / "events"))
    assert events.schema.names == list(EVENTS.names)
    once = events.dropDuplicates(["id"])
    finished = once.filter(col("kind").isin("completed", "failed", "dead"))
    assert finished.select("job_id").distinct().count() == 60
    assert finished.count() == 60
    if url.startswith("bullmq"):  # its events are a log, read by its ids: nothing is read twice
        assert events.count() == once.count()


async def test_events_can_be_read_in_batch_too(spark: Any, url: str) -> None:
    await work_off(url, range(1, 11))
    kinds = Counter(row["kind"] for row in read(spark, url, "events").dropDuplicates(["id"]).collect())
    assert kinds["completed"] == 9


def test_a_stream_of_jobs_is_refused(spark: Any, place: Any, tmp_path: Path) -> None:
    stream = spark.readStream.format("jobwire").options(url=place("bullmq"), queue="mail").load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException, match="must be events"):
        query.awaitTermination()


def test_a_store_that_is_not_there_is_named_without_its_password(spark: Any) -> None:
    with pytest.raises(PySparkException) as refused:
        read(spark, "bullmq+redis://app:hunter2@127.0.0.1:1").count()
    assert "127.0.0.1:1" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_filters_narrow_what_is_wanted() -> None:
    wanted = Wanted()
    for one in (EqualTo(("state",), "failed"), In(("state",), ("failed", "completed", "nonsense"))):
        wanted = narrowed(wanted, one)
    assert wanted.states == {State.FAILED}
    assert narrowed(Wanted(), EqualTo(("payload",), "1")) == Wanted()


def utc(time: datetime | None) -> datetime | None:
    """Spark gives times in the machine's zone, without naming it."""
    return None if time is None else time.astimezone(UTC)
