"""Workers and producers whose clocks are five minutes wrong: jobs run when they are due by the server's clock."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from awaiting import eventually
from faults.echo_worker import echo
from jobwire import Backoff, NewJob, Queue, State, Worker
from jobwire.embedded import Server

pytestmark = pytest.mark.slow
PROGRAM = str(Path(__file__).parent / "bullmq_wrong_clock.py")
AHEAD, BEHIND = 300.0, -300.0
DELAY = 2.0


@pytest.fixture
def url(jobwire_valkey: Server, unique: str) -> str:
    return f"bullmq+{jobwire_valkey.url}?prefix={unique}"


@pytest.fixture
async def queue(url: str) -> AsyncIterator[Queue]:
    async with Queue("work", url) as opened:
        yield opened


@asynccontextmanager
async def worker_with_a_wrong_clock(url: str, wrong_by: float) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, str(wrong_by), "work", url)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.parametrize("wrong_by", [AHEAD, BEHIND])
async def test_a_delayed_job_runs_on_time_with_a_worker_whose_clock_is_wrong(
    queue: Queue, url: str, wrong_by: float
) -> None:
    async with worker_with_a_wrong_clock(url, wrong_by):
        await (await queue.add(0)).wait(30)  # it works
        for how in ("added to an idle worker", "found by a busy one"):
            added = time.time()
            job = await queue.add(0, delay=DELAY)
            if how == "found by a busy one":
                await queue.add_many([NewJob(0.2) for _ in range(20)])
            await job.wait(60)
            # The clocks are compared through the server, which is exact to the time of a round trip.
            assert DELAY - 1 <= time.time() - added < 60, how


@pytest.mark.parametrize("wrong_by", [AHEAD, BEHIND])
async def test_a_retry_waits_for_its_backoff_with_a_worker_whose_clock_is_wrong(
    queue: Queue, url: str, wrong_by: float
) -> None:
    async with worker_with_a_wrong_clock(url, wrong_by):
        job = await queue.add("no number", attempts=2, backoff=Backoff.fixed(DELAY))

        async def failed_once() -> bool:
            found = await queue.get(job.id)
            return found is not None and found.state is State.DELAYED

        await eventually(failed_once, within=30)
        failed = time.time()

        async def failed_twice() -> bool:
            found = await queue.get(job.id)
            return found is not None and found.state is State.FAILED

        await eventually(failed_twice, within=60)
        assert DELAY - 1 <= time.time() - failed < 60


@pytest.mark.parametrize("wrong_by", [AHEAD, BEHIND])
async def test_a_producer_whose_clock_is_wrong_delays_by_what_it_was_asked_for(
    queue: Queue, url: str, wrong_by: float
) -> None:
    async with Worker("work", echo, url):
        before = time.time()
        process = await asyncio.create_subprocess_exec(
            sys.executable, PROGRAM, str(wrong_by), "add", url, str(DELAY), stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await process.communicate()
        added = time.time()
        job_id = printed.decode().strip()
        await queue.wait(job_id, 60)
        assert before + DELAY - 0.05 <= time.time() < added + 60
        job = await queue.get(job_id)
        assert job is not None
        assert job.created_at is not None
        assert before - 1 <= job.created_at.timestamp() <= added + 1


@pytest.mark.parametrize("wrong_by", [AHEAD, BEHIND])
async def test_a_worker_whose_clock_is_wrong_takes_no_healthy_job_from_another(
    queue: Queue, url: str, wrong_by: float
) -> None:
    runs: list[int] = []

    async def slow(job: object) -> None:
        runs.append(1)
        await asyncio.sleep(5)

    async with Worker("work", slow, url, concurrency=5, lease=4.0, recover_every=0.3) as worker:
        await queue.add_many([NewJob(0) for _ in range(5)])
        await eventually(lambda: len(runs) == 5)
        async with worker_with_a_wrong_clock(url, wrong_by):
            await eventually(lambda: worker.stats.completed == 5, within=60)
    assert len(runs) == 5
