"""Processes whose clock is minutes wrong, beside one whose clock is right: leases and due times keep their time."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pymongo import MongoClient

from awaiting import eventually
from jobwire import NewJob, Queue, Worker
from jobwire.embedded import Server
from jobwire.model import State

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PROGRAM = str(Path(__file__).with_name("monque_worker.py"))
MINUTES = 300


@pytest.fixture
def url(jobwire_mongo: Server, unique: str) -> Iterator[str]:
    yield f"monque+{jobwire_mongo.url.replace('/?', f'/{unique}?')}"
    with MongoClient(jobwire_mongo.url) as client:
        client.drop_database(unique)


@contextlib.asynccontextmanager
async def worker_with_clock(url: str, ahead: float, nap: float):
    program = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, url, str(ahead), str(nap))
    try:
        yield program
    finally:
        with contextlib.suppress(ProcessLookupError):
            program.terminate()
        await asyncio.wait_for(program.wait(), 60)


@pytest.mark.parametrize("ahead", [MINUTES, -MINUTES])
async def test_no_healthy_job_is_taken_for_stalled_by_a_worker_with_a_wrong_clock(url, ahead):
    async def handler(job):
        await asyncio.sleep(1.0)
        return "right clock"

    right = Worker("work", handler, url, concurrency=5, lease=4.0, recover_every=0.2, max_stalled=0)
    async with Queue("work", url) as queue, worker_with_clock(url, ahead, 1.0) as wrong:
        await (await queue.add("it has started")).wait(timeout=60)
        added = await queue.add_many([NewJob(n) for n in range(30)])

        async def done():
            counts = await queue.counts()
            return counts[State.COMPLETED] + counts[State.FAILED] == len(added) + 1

        async with right:
            await eventually(done, within=90)
        assert (await queue.counts())[State.FAILED] == 0
        results = {str(job.result) for job in [await queue.get(one.id) for one in added]}
        assert "right clock" in results
        assert len(results) > 1, "the worker with the wrong clock had its share"
        assert right.stats.recovered == 0
        assert wrong.returncode is None


@pytest.mark.parametrize("ahead", [MINUTES, -MINUTES])
async def test_a_delayed_job_is_run_at_its_time_by_a_worker_with_a_wrong_clock(url, ahead):
    async with Queue("work", url) as queue, worker_with_clock(url, ahead, 0.0):
        await (await queue.add("warm")).wait(timeout=60)
        asked = time.time()
        delayed = await queue.add("later", delay=3)
        ran_at = await delayed.wait(timeout=60)
        assert 2.9 < ran_at - asked < 30
        job = await queue.get(delayed.id)
        assert abs(job.finished_at.timestamp() - time.time()) < 60


async def test_a_wrong_clock_of_a_producer_neither_delays_nor_hastens_its_jobs(url, monkeypatch):
    real, real_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: real() + MINUTES)
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + MINUTES * 1_000_000_000)
    async with Queue("work", url) as queue:
        at_once = await queue.add("now")
        later = await queue.add("later", delay=60)
        due = [(await queue.get(one.id)).run_at.timestamp() - real() for one in (at_once, later)]
        assert abs(due[0]) < 5
        assert abs(due[1] - 60) < 5
        assert (await queue.get(later.id)).state is State.DELAYED
        assert (await queue.counts())[State.DELAYED] == 1
