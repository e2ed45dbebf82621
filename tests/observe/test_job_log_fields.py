"""The records about a run have the fields that a reader searches by, and reach a log file whatever the error is."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from jobwire import JobFailed, Queue, Worker
from jobwire.observe.logging import JobLog

FIELDS = ("worker", "queue", "job", "attempt", "category")


async def test_job_log_writes_an_error_that_is_not_unicode_into_a_file_with_all_fields(
    tmp_path: Path, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(job: Any) -> None:
        raise ValueError("bad \ud800")

    file = logging.FileHandler(tmp_path / "jobs.log", encoding="utf-8")
    logger = logging.getLogger("jobwire.jobs")
    logger.addHandler(file)
    try:
        async with Queue("q", f"memory:{unique}") as queue:
            job = await queue.add(1)
            await Worker("q", handler, queue.connection, worker_id="w-1", observers=[JobLog()]).run_until_idle()
    finally:
        logger.removeHandler(file)
        file.close()
    assert "bad \\ud800" in (tmp_path / "jobs.log").read_text()
    [record] = [record for record in caplog.records if record.name == "jobwire.jobs" and record.levelname == "WARNING"]
    assert [vars(record).get(name) for name in FIELDS] == ["w-1", "q", job.id, 1, "permanent"]


async def test_an_abandoned_thread_is_logged_with_its_job(unique: str, caplog: pytest.LogCaptureFixture) -> None:
    go = threading.Event()

    def handler(job: Any) -> None:
        go.wait(20)

    async with Queue("q", f"memory:{unique}") as queue:
        async with Worker("q", handler, queue.connection, worker_id="w-1", timeout=0.05):
            job = await queue.add(1)
            with pytest.raises(JobFailed):
                await job.wait(10)
        go.set()
    [record] = [record for record in caplog.records if "abandoned thread" in record.getMessage()]
    assert [vars(record).get(name) for name in FIELDS] == ["w-1", "q", job.id, 1, "transient"]
