"""A job claimed along with a wait has a slot waiting for it; one that goes back unrun leaves no trace of its claim."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis

from awaiting import eventually
from jobwire import Queue, State, Worker
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.bullmq.work import wakeup
from jobwire.boundary import Backend, Completed, Consumer
from jobwire.embedded import Server
from jobwire.native import BullMQWorker
from jobwire.options import NewJob

from .dump import dump
from .jobs import add, claim, consumer
from .test_wait import FOR_EVER, blocked


@pytest.fixture
async def no_look_unasked(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait ends by its marker only; and the server knows the script, without which an order brings nothing."""
    monkeypatch.setattr(wakeup, "LONGEST_WAIT", FOR_EVER)
    await claim(consumer(backend, "another"))


@pytest.fixture
async def worker(backend: Backend, no_look_unasked: None) -> AsyncIterator[Consumer]:
    worker = consumer(backend, name="w1")
    yield worker
    await worker.close()


async def everything(redis: Redis, keys: Keys) -> dict[str, Any]:
    """All that is stored of the queue but the marker, which is a wake-up and no state."""
    stored: dict[str, Any] = await dump(redis, keys.prefix)
    return {key: value for key, value in stored.items() if not key.endswith("marker")}


async def bring(worker: Consumer, redis: Redis, keys: Keys) -> None:
    """Let a wait of the worker end, which brings it a job."""
    await redis.delete(keys.marker)
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    await redis.zadd(keys.marker, {"0": 0})
    await waiting


@pytest.mark.parametrize("job", [NewJob(1), NewJob(1, priority=3), NewJob(1, lifo=True)], ids=["plain", "prio", "lifo"])
async def test_taking_back_leaves_the_queue_as_it_was(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys, job: NewJob
) -> None:
    await add(backend, job, NewJob(2, priority=3), job)
    before = await everything(redis, keys)
    await bring(worker, redis, keys)
    assert await redis.llen(keys.active) == 1
    await worker.pass_on()
    assert await everything(redis, keys) == before
    assert await redis.zscore(keys.marker, "0") == 0


async def test_taking_back_restores_what_an_earlier_run_left(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, NewJob(1))
    await redis.hset(keys.job("1"), mapping={"ats": 2, "processedOn": 1_600_000_000_000, "pb": "another", "stc": 1})
    before = await redis.hgetall(keys.job("1"))
    await bring(worker, redis, keys)
    assert await redis.hget(keys.job("1"), "ats") == b"3"
    await worker.pass_on()
    assert await redis.hgetall(keys.job("1")) == before


async def test_taking_back_an_entry_without_a_hash_makes_none(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await redis.rpush(keys.wait, "gone")
    await bring(worker, redis, keys)
    assert await redis.exists(keys.job("gone"))
    await worker.pass_on()
    assert not await redis.exists(keys.job("gone"))


async def test_a_scheduled_job_makes_its_next_one_when_it_is_taken_and_not_before(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys, jobwire_valkey: Server
) -> None:
    async with Queue("q", f"bullmq+{jobwire_valkey.url}?prefix={keys.prefix}") as queue:
        await queue.schedule("s", every=3600, data=1)
    before = await redis.zscore(keys.repeat, "s")
    await bring(worker, redis, keys)
    assert await redis.zscore(keys.repeat, "s") == before
    assert len(await claim(worker)) == 1
    assert await redis.zscore(keys.repeat, "s") > before


async def test_a_queue_with_a_rate_limit_spends_a_start_only_on_a_job_that_runs(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await redis.hset(keys.meta, mapping={"max": 5, "duration": 60_000})
    await add(backend, NewJob(1))
    await bring(worker, redis, keys)
    await worker.pass_on()
    assert await redis.get(keys.limiter) is None
    assert await redis.llen(keys.active) == 0
    assert len(await claim(worker)) == 1
    assert await redis.get(keys.limiter) == b"1"


async def test_a_call_under_way_leaves_a_slot_to_the_job_that_a_wait_brings(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    """Two slots are free, a call asks for both while an order is out, and two jobs are there without a marker."""
    await add(backend, NewJob(1), NewJob(2), NewJob(3))
    [held] = await claim(worker)
    await redis.delete(keys.marker)
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    claims = list((await worker.settle([Completed(held, b"1")], 2)).claims)
    await waiting  # by the marker of that claim
    if len(claims) < 2:
        claims += await claim(worker, 2 - len(claims))
    assert sorted(one.job.id for one in claims) == ["2", "3"]
    assert await redis.lrange(keys.active, 0, -1) == [b"3", b"2"]


async def test_an_early_claim_whose_lease_ran_out_unseen_is_not_run(
    backend: Backend, redis: Redis, keys: Keys, no_look_unasked: None
) -> None:
    worker = consumer(backend, name="w1", lease=0.2)
    await add(backend, NewJob(1))
    await bring(worker, redis, keys)

    async def expired() -> bool:
        return not await redis.exists(keys.lock("1"))

    await eventually(expired)
    assert await claim(worker) == []
    await worker.close()


async def test_an_early_claim_that_has_waited_for_a_part_of_its_lease_is_renewed(
    backend: Backend, redis: Redis, keys: Keys, no_look_unasked: None
) -> None:
    worker = consumer(backend, name="w1", lease=20)
    await add(backend, NewJob(1))
    await bring(worker, redis, keys)
    await redis.pexpire(keys.lock("1"), 5000)
    # Fifteen seconds can't be waited for, so the claim is made to look that old.
    early = vars(worker)["_early"]
    early[:] = [replace(one, claimed_ms=one.claimed_ms - 15_000) for one in early]
    assert len(await claim(worker)) == 1
    assert await redis.pttl(keys.lock("1")) > 15_000
    await worker.close()


async def test_a_job_that_was_claimed_early_does_not_end_before_it_began(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, NewJob(1))
    clock = vars(worker)["_store"].clock
    await clock.now_ms()
    vars(clock)["_ahead"] -= 1000  # as after a reply to TIME that took a second
    await bring(worker, redis, keys)

    [claimed] = await claim(worker)
    await worker.settle([Completed(claimed, b"1")], 0)

    began, ended = await redis.hmget(keys.job("1"), "processedOn", "finishedOn")
    assert int(began) <= int(ended)


async def test_a_prioritised_job_that_is_taken_back_wakes_another_worker(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    await add(backend, NewJob(1, priority=3))
    await waiting
    await redis.delete(keys.marker)  # another worker has taken the marker of the pick-up and found nothing
    other = consumer(backend, name="w2")
    looking = asyncio.create_task(other.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys, "w2"))
    await worker.pass_on()
    await looking
    assert [one.job.id for one in await claim(other)] == ["1"]
    await other.close()


@pytest.mark.slow
async def test_every_start_is_a_run_under_bursts(jobwire_valkey: Server, redis: Redis, keys: Keys) -> None:
    """With one start allowed, a job that is claimed and handed back unrun would fail for good."""
    url = f"bullmq+{jobwire_valkey.url}?prefix={keys.prefix}"
    rng, once = random.Random(7), BullMQWorker(max_started_attempts=1)

    async def handle(job: Any) -> None:
        await asyncio.sleep(rng.uniform(0, 0.004))

    added = 0
    async with (
        Queue("q", url) as queue,
        Worker("q", handle, url, concurrency=3, native=once, name="a"),
        Worker("q", handle, url, concurrency=3, native=once, name="b"),
    ):
        for _ in range(250):
            size = rng.randint(1, 5)
            await queue.add_many([NewJob(n, priority=rng.choice([None, 2])) for n in range(size)])
            added += size
            await asyncio.sleep(rng.uniform(0, 0.008))

        async def all_finished() -> bool:
            counts = await queue.counts()
            return counts[State.COMPLETED] + counts[State.FAILED] == added

        await eventually(all_finished)
        assert (await queue.counts())[State.FAILED] == 0
    events = [fields async for fields in _events(redis, keys)]
    assert sum(one[b"event"] == b"active" for one in events) == added
    assert [one for one in events if one.get(b"prev") == b"active" and one[b"event"] == b"waiting"] == []


async def test_a_worker_that_stops_while_jobs_come_in_starts_none_that_it_does_not_run(
    jobwire_valkey: Server, redis: Redis, keys: Keys
) -> None:
    url = f"bullmq+{jobwire_valkey.url}?prefix={keys.prefix}"
    go, started = asyncio.Event(), asyncio.Event()

    async def handle(job: Any) -> None:
        started.set()
        await go.wait()

    async with Queue("q", url) as queue:
        worker = Worker("q", handle, url, concurrency=3, name="w1")
        running = asyncio.create_task(worker.run(signals=False))
        await queue.add(0)
        await started.wait()
        await eventually(lambda: blocked(redis, keys))
        stopping = asyncio.create_task(worker.stop())
        await eventually(lambda: not worker.claiming)
        await queue.add_many([NewJob(n) for n in range(10)])

        async def free() -> bool:
            return not await blocked(redis, keys)

        await eventually(free)
        go.set()
        await asyncio.gather(stopping, running)
        jobs = await queue.jobs(State.WAITING, limit=20)
    assert len(jobs) == 10
    assert [await redis.hget(keys.job(job.id), "ats") for job in jobs] == [None] * 10
    newest = await redis.xrevrange(keys.events, count=1)
    last_made = (await redis.xinfo_stream(keys.events))["last-generated-id"]
    assert newest[0][0] == last_made, "an event was made and deleted again"


async def _events(redis: Redis, keys: Keys) -> AsyncIterator[dict[bytes, bytes]]:
    for _, fields in await redis.xrange(keys.events):
        yield fields
