"""Finished jobs into the lake and back: nothing leaves a queue that was not read back equal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobwire import NewJob, State, Unrecoverable
from jobwire.errors import InvalidOption
from jobwire.pipeline.archive.archive import archive
from jobwire.pipeline.archive.restore import restore
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.pointers import read_table
from jobwire.sync import Queue, Worker

pytestmark = [pytest.mark.xdist_group("spark-movers"), pytest.mark.timeout(600)]
Place = Callable[[str], str]


def later() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def finished(url: str, count: int, failing: int = 0) -> None:
    """A queue with so many jobs completed and so many failed, each run by a worker."""

    def handle(job: Any) -> Any:
        if job.data["n"] >= count:
            raise Unrecoverable(f"broken pipe {job.data['n']}")
        return {"sent": job.data["n"], "to": "żółć 🙂"}

    with Queue("mail", url) as queue:
        queue.add_many([NewJob({"n": number}) for number in range(count + failing)])
        worker = Worker("mail", handle, url, concurrency=20)
        thread = threading.Thread(target=lambda: worker.run(signals=False))
        thread.start()
        ended = threading.Event()
        try:
            for _ in range(1200):
                counts = queue.counts()
                if counts[State.COMPLETED] == count and counts[State.FAILED] == failing:
                    return
                ended.wait(0.05)
            raise AssertionError(f"the worker did not finish: {queue.counts()}")
        finally:
            worker.stop()
            thread.join()


def read(url: str, state: str) -> dict[int, Any]:
    with Queue("mail", url) as queue:
        return {job.data["n"]: job for job in queue.jobs(state=state, limit=1000)}


def test_finished_jobs_are_archived_once_purged_only_when_asked_and_restored_as_they_were(
    spark: Any, url: str, lake: str
) -> None:
    finished(url, 40, failing=3)
    before = {n: shown(job) for n, job in {**read(url, "completed"), **read(url, "failed")}.items()}

    first = archive(spark, Lake(lake), url, "mail", later())
    again = archive(spark, Lake(lake), url, "mail", later())
    kept = len(read(url, "completed")), len(read(url, "failed"))
    purging = archive(spark, Lake(lake), url, "mail", later(), purge=True)

    rows = read_table(lake, "archive").to_pylist()
    assert (first.read, first.archived, first.verified, first.purged) == (43, 43, 43, 0)
    assert (again.archived, again.there_before) == (0, 43)
    assert kept == (40, 3)
    assert (purging.archived, purging.purged, purging.kept) == (0, 43, 0)
    assert (read(url, "completed"), read(url, "failed")) == ({}, {})
    assert len(rows) == len({row["id"] for row in rows}) == 43
    assert {row["error"] for row in rows if row["state"] == "failed"} == {f"broken pipe {n}" for n in (40, 41, 42)}

    result = restore(spark, Lake(lake), url, "mail", where="state IN ('completed', 'failed')")
    restored_again = restore(spark, Lake(lake), url, "mail", where="state = 'completed'")

    after = {n: shown(job) for n, job in {**read(url, "completed"), **read(url, "failed")}.items()}
    assert after == before
    assert (result.found, result.restored) == (43, 43)
    assert (restored_again.found, restored_again.restored, restored_again.there_before) == (40, 0, 40)


def shown(job: Any) -> tuple[Any, ...]:
    return (job.id, job.data, job.state, job.result, job.error, job.created_at, job.finished_at, job.attempts_made)


def test_jobs_can_be_restored_by_id_into_another_protocol(spark: Any, place: Place, lake: str) -> None:
    here, there = place("bullmq"), place("pgboss")
    finished(here, 3)
    archive(spark, Lake(lake), here, "mail", later(), purge=True)
    row = Lake(lake).table(spark, "archive").collect()[0]

    result = restore(
        spark, Lake(lake), there, "mail", ids=[row["id"], "no such job"], from_store=row["store"], from_queue="mail"
    )

    [job] = read(there, "completed").values()
    assert (result.found, result.restored, result.missing) == (1, 1, ("no such job",))
    assert job.result == {"sent": job.data["n"], "to": "żółć 🙂"}


def test_jobs_that_finished_later_stay(spark: Any, place: Place, lake: str) -> None:
    url = place("bullmq")
    finished(url, 4)

    result = archive(spark, Lake(lake), url, "mail", datetime.now(UTC) - timedelta(hours=1), purge=True)

    assert (result.read, result.purged) == (0, 0)
    assert len(read(url, "completed")) == 4


def test_a_job_that_was_retried_between_the_reading_back_and_the_purge_survives(
    spark: Any, url: str, lake: str
) -> None:
    finished(url, 0, failing=5)
    chosen = read(url, "failed")[2].id

    def retry(stage: str, done: int, total: int | None) -> None:
        if stage == "purge" and done == 0:
            with Queue("mail", url) as queue:
                queue.admin.retry(chosen)

    result = archive(spark, Lake(lake), url, "mail", later(), purge=True, progress=retry)

    assert (result.verified, result.purged, result.kept) == (5, 4, 1)
    assert list(read(url, "waiting")) == [2]
    assert read(url, "failed") == {}


def test_a_time_without_a_zone_is_refused(spark: Any, place: Place, lake: str) -> None:
    with pytest.raises(InvalidOption, match="must carry a time zone"):
        archive(spark, Lake(lake), place("bullmq"), "mail", datetime(2026, 1, 1))  # noqa: DTZ001 that is the point
