"""A server short of memory: locks that it evicts are recovered from, and producers hear why they must wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import OutOfMemoryError

from awaiting import eventually
from jobwire import Queue, State, StoreUnavailable, Worker, embedded
from jobwire.options import NewJob
from jobwire.worker.active import ActiveJob

pytestmark = pytest.mark.slow

JOBS = 40
FILLER = "x" * 20_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[embedded.Server]:
    """A server whose memory may be taken away from it."""
    with embedded.valkey(tmp_path, durable=False) as started:
        yield started


@pytest.fixture
async def redis(server: embedded.Server) -> AsyncIterator[Redis]:
    async with Redis.from_url(server.url, decode_responses=True) as client:
        yield client


@pytest.fixture
async def queue(server: embedded.Server) -> AsyncIterator[Queue]:
    async with Queue("work", f"bullmq+{server.url}") as opened:
        yield opened


async def evict_locks(redis: Redis) -> None:
    """Fill the memory with keys that stay, until every key that may go has gone."""
    used = (await redis.info("memory"))["used_memory"]
    await redis.config_set("maxmemory-policy", "volatile-lru")
    await redis.config_set("maxmemory", used + 200_000)
    with pytest.raises(OutOfMemoryError):
        await fill(redis)
    await redis.config_set("maxmemory", 0)


async def fill(redis: Redis) -> None:
    for number in range(1000):
        await redis.set(f"filler:{number}", FILLER)


async def test_jobs_whose_locks_were_evicted_are_run_again_and_complete_once(
    server: embedded.Server, queue: Queue, redis: Redis
) -> None:
    runs: dict[str, int] = {}

    async def handle(job: ActiveJob) -> str:
        runs[job.id] = runs.get(job.id, 0) + 1
        if runs[job.id] == 1:
            await asyncio.Event().wait()  # until the worker stops it, for its lock is gone
        return f"run {runs[job.id]}"

    await queue.add_many([NewJob(number) for number in range(JOBS)])
    worker = Worker("work", handle, f"bullmq+{server.url}", concurrency=JOBS, lease=2.0, recover_every=0.3)
    running = asyncio.create_task(worker.run())
    try:
        await eventually(lambda: len(runs) == JOBS)
        await evict_locks(redis)
        await eventually(lambda: _completed(queue, JOBS), within=30)
    finally:
        await worker.stop()
        await running
    told = [fields for _, fields in await redis.xrange("bull:work:events") if fields["event"] == "completed"]
    assert sorted(fields["jobId"] for fields in told) == sorted(runs)
    assert {fields["returnvalue"] for fields in told} == {'"run 2"'}
    assert (await redis.info("stats"))["evicted_keys"] >= JOBS


async def _completed(queue: Queue, number: int) -> bool:
    counts = await queue.counts()
    return counts[State.COMPLETED] == number and counts[State.ACTIVE] == 0


async def test_a_full_server_refuses_producers_with_the_reason_while_workers_finish(
    server: embedded.Server, queue: Queue, redis: Redis
) -> None:
    go_on = asyncio.Event()

    async def handle(job: ActiveJob) -> int:
        await go_on.wait()
        return job.data * 2

    jobs = await queue.add_many([NewJob(number, attempts=2) for number in range(JOBS)])
    worker = Worker("work", handle, f"bullmq+{server.url}", concurrency=5)
    running = asyncio.create_task(worker.run())
    try:
        await eventually(lambda: _active(queue, 5))
        await redis.config_set("maxmemory-policy", "noeviction")
        await redis.config_set("maxmemory", 1)
        with pytest.raises(StoreUnavailable, match="maxmemory"):
            await queue.add("one too many")
        with pytest.raises(StoreUnavailable, match="maxmemory"):
            await queue.add_many([NewJob(1), NewJob(2)])
        go_on.set()
        await eventually(lambda: _completed(queue, JOBS), within=30)
        await redis.config_set("maxmemory", 0)
        later = await queue.add(50)
        assert await later.wait(timeout=10) == 100
    finally:
        await worker.stop()
        await running
    assert [(await queue.get(job.id)).result for job in jobs] == [number * 2 for number in range(JOBS)]  # pyright: ignore[reportOptionalMemberAccess]


async def _active(queue: Queue, number: int) -> bool:
    return (await queue.counts())[State.ACTIVE] == number
