"""A paused worker has a job in hand now and then, and knows when the next delayed one comes due: both go to others."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from awaiting import eventually
from jobwire import Queue, State, Worker, embedded
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.bullmq.work import wakeup
from jobwire.backends.bullmq.work.early_claims import UndoneClaim
from jobwire.boundary import Backend, Consumer
from jobwire.connection import load_backend
from jobwire.embedded import Server
from jobwire.errors import JobwireError
from jobwire.native import BullMQWorker
from jobwire.options import NewJob
from jobwire.urls import parse

from .jobs import add, claim, consumer
from .test_early_claims import bring
from .test_wait import FOR_EVER, blocked


async def handle(job: Any) -> None: ...


async def test_a_worker_that_is_paused_leaves_the_delay_marker_to_others(
    jobwire_valkey: Server, redis: Redis, keys: Keys
) -> None:
    url = f"bullmq+{jobwire_valkey.url}?prefix={keys.prefix}"
    async with Queue("q", url) as queue, Worker("q", handle, url, name="w1") as worker:
        await eventually(lambda: blocked(redis, keys))
        await queue.add(1, delay=3600)

        async def taken() -> bool:
            return not await redis.exists(keys.marker) and bool(await blocked(redis, keys))

        await eventually(taken)
        await worker.pause()
        assert await redis.zscore(keys.marker, "1") == pytest.approx(time.time() * 1000 + 3_600_000, abs=120_000)


async def test_every_start_is_a_run_although_the_worker_is_paused_again_and_again(
    jobwire_valkey: Server, redis: Redis, keys: Keys
) -> None:
    """With one start allowed, a job that is claimed and handed back with a trace would fail for good."""
    url = f"bullmq+{jobwire_valkey.url}?prefix={keys.prefix}"
    rng, once, added = random.Random(11), BullMQWorker(max_started_attempts=1), 0
    async with Queue("q", url) as queue, Worker("q", handle, url, concurrency=2, native=once) as worker:
        for _ in range(150):
            size = rng.randint(1, 3)
            added += size
            adding = asyncio.create_task(queue.add_many([NewJob(n) for n in range(size)]))
            await asyncio.sleep(rng.uniform(0, 0.003))
            await worker.pause()
            await adding
            assert await redis.llen(keys.active) == 0
            worker.resume()
            await asyncio.sleep(rng.uniform(0, 0.006))
        await eventually(lambda: worker.stats.completed == added)
        assert (await queue.counts())[State.FAILED] == 0
    events = [fields[b"event"] for _, fields in await redis.xrange(keys.events)]
    assert events.count(b"active") == added


@pytest.fixture
async def refusing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Backend, Redis, Consumer]]:
    """A server of the test's own, and a worker that has a job in hand which the server did not take back."""
    monkeypatch.setattr(wakeup, "LONGEST_WAIT", FOR_EVER)
    with embedded.valkey(tmp_path, durable=False) as server:
        backend = load_backend(parse(f"bullmq+{server.url}"))
        await backend.open()
        worker, keys = consumer(backend, name="w1"), Keys("bull", "q")
        await claim(worker)  # or the server would not know the script
        await add(backend, NewJob(1))
        async with Redis.from_url(server.url) as redis:
            await bring(worker, redis, keys)
            assert await redis.llen(keys.active) == 1
            await redis.execute_command("ACL", "SETUSER", "default", "-evalsha", "-eval")
            with pytest.raises(JobwireError):
                await worker.pass_on()
            await redis.execute_command("ACL", "SETUSER", "default", "+evalsha", "+eval")
            yield backend, redis, worker
        await worker.close()
        await backend.close()


async def test_a_job_in_hand_that_the_server_did_not_take_back_is_handed_back_later(
    refusing: tuple[Backend, Redis, Consumer],
) -> None:
    _, redis, worker = refusing
    await worker.pass_on()
    assert await redis.lrange("bull:q:wait", 0, -1) == [b"1"]
    assert await redis.llen("bull:q:active") == 0
    assert await redis.hget("bull:q:1", "ats") is None


async def test_a_job_in_hand_that_the_server_did_not_take_back_can_still_be_run(
    refusing: tuple[Backend, Redis, Consumer],
) -> None:
    _, _, worker = refusing
    assert [one.job.id for one in await claim(worker)] == ["1"]


async def test_a_job_in_hand_that_was_taken_back_without_an_answer_is_not_run_twice(
    refusing: tuple[Backend, Redis, Consumer],
) -> None:
    backend, _, worker = refusing
    other = consumer(backend, name="w2")
    # As if the call had been carried out and its answer lost: the job is back, and another worker has it by now.
    await other.settle([UndoneClaim(one.claim, one.trace) for one in vars(worker)["_early"]], 0)
    assert [one.job.id for one in await claim(other)] == ["1"]
    assert await claim(worker) == []
    await other.close()
