"""Limits of a job type, carried by its jobs or kept by its workers."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from awaiting import assert_left, eventually
from jobwire import NewJob, Rate
from jobwire.boundary import Completed, Failed, Released, Snoozed


@pytest.mark.slow
async def test_the_limit_is_never_exceeded_by_fifty_workers(queue, work, peer):
    running = most = 0

    async def handler(job):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1

    jobs = [NewJob(n, extra={"maxConcurrent": 3}) for n in range(120)]
    async with contextlib.AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(work(handler, concurrency=2)) for _ in range(50)]
        await queue.add_many(jobs)
        await eventually(lambda: sum(worker.stats.completed for worker in workers) == 120, within=60)
    assert most <= 3
    assert await peer.redis.get(peer.key("ratelimit", "concurrent", "mail")) == "0"


async def test_jobs_with_different_limits_share_the_types_counter(queue, consume, claimed):
    await queue.add_many([NewJob(n, extra={"maxConcurrent": 2}) for n in range(3)])
    await queue.add_many([NewJob(n) for n in (10, 11)])
    await queue.add_many([NewJob(n, extra={"maxConcurrent": 5}) for n in range(20, 24)])
    assert [claim.job.data for claim in await claimed(consume(), 10)] == [0, 1, 10, 11, 20]


async def test_a_limit_of_none_lets_none_run(queue, consume, claimed):
    await queue.add(1, extra={"maxConcurrent": 0})
    await queue.add(2, extra={"maxPerMinute": 0})
    assert await claimed(consume(), 5) == []


async def test_no_more_start_in_a_minute_than_allowed_and_the_wait_is_told(queue, consume, peer):
    await queue.add_many([NewJob(n, extra={"maxPerMinute": 4}) for n in range(10)])
    consumer = consume()
    began = time.monotonic()
    settled = await consumer.settle([], 10)
    assert len(settled.claims) == 4
    again = await consumer.settle([Completed(claim, b"1") for claim in settled.claims], 10)
    assert_left(again.next_in, of=60, since=began)
    assert list(again.claims) == []
    await peer.redis.delete(peer.key("ratelimit", "minute", "mail"))
    assert len((await consumer.settle([], 10)).claims) == 4


async def test_nor_do_fifty_that_claim_at_once(queue, consume):
    await queue.add_many([NewJob(n, extra={"maxPerMinute": 7}) for n in range(60)])
    for _ in range(3):
        answers = await asyncio.gather(*(consume().settle([], 2) for _ in range(50)))
        started = [claim.job.data for settled in answers for claim in settled.claims]
        assert sorted(started) in (list(range(7)), [])
    assert started == []


async def test_the_smaller_of_the_workers_and_the_jobs_limit_counts(queue, consume, claimed):
    await queue.add_many([NewJob(n, extra={"maxConcurrent": 5}) for n in range(10)])
    assert len(await claimed(consume(max_concurrent=2), 10)) == 2
    assert len(await claimed(consume(max_concurrent=9), 10)) == 3


async def test_a_limited_type_does_not_hold_up_another(queue, consume, claimed, connection):
    from jobwire import Queue

    await queue.add_many([NewJob(n, extra={"maxConcurrent": 0}) for n in range(300)])
    async with Queue("letter", connection) as other:
        await other.add("goes out")
    assert [claim.job.data for claim in await claimed(consume(queue="letter"), 5)] == ["goes out"]


async def test_the_counter_comes_back_whatever_the_outcome(queue, consume, claimed, peer):
    await queue.add_many([NewJob(n, attempts=2) for n in range(5)])
    consumer = consume()
    a, b, c, d, e = await claimed(consumer, 5)
    counter = peer.key("ratelimit", "concurrent", "mail")
    assert await peer.redis.get(counter) == "5"
    outcomes = [Completed(a, b"1"), Failed(b, "no"), Failed(c, "no", final=True), Released(d), Snoozed(e, 60)]
    await consumer.settle(outcomes, 0)
    assert await peer.redis.get(counter) == "0"


async def test_a_peer_respects_the_limit_that_we_wrote(queue, peer):
    await queue.add_many([NewJob(n, extra={"maxConcurrent": 2}) for n in range(5)])
    assert [job and job["payload"] for job in [await peer.claim() for _ in range(3)]] == [0, 1, None]


@pytest.mark.parametrize("left_ms", [None, 1], ids=["no time to live", "its last millisecond"])
@pytest.mark.parametrize("key", ["x:rate:mail", "ratelimit:minute:mail"])
async def test_a_full_window_lets_no_more_through_than_the_next_one_allows(queue, consume, peer, key, left_ms):
    limit = {"rate": Rate(4, per=60)} if key == "x:rate:mail" else {"max_per_minute": 4}
    await queue.add_many([NewJob(n) for n in range(20)])
    consumer = consume(**limit)
    await consumer.settle([], 0)
    await peer.redis.set(peer.key(key), 4, px=left_ms)
    started = 0
    async with asyncio.timeout(10):
        while not started and left_ms is not None:
            started = len((await consumer.settle([], 20)).claims)
    settled = await consumer.settle([], 20)
    assert started in (0, 4)
    assert not settled.claims
    assert 0 < await peer.redis.pttl(peer.key(key)) <= 60_000
    assert max(settled.blocked_for, settled.next_in or 0) > 20, "the wait is the window, not a spin"


@pytest.mark.parametrize("value", ["-7", "many", "nan", "1e400", "0x10", "9223372036854775808", ""])
@pytest.mark.parametrize("key", ["x:rate:mail", "ratelimit:minute:mail", "ratelimit:concurrent:mail"])
async def test_a_counter_that_is_no_count_is_taken_for_none(queue, consume, peer, key, value):
    limits = {
        "x:rate:mail": {"rate": Rate(4, per=60)},
        "ratelimit:minute:mail": {"max_per_minute": 4},
        "ratelimit:concurrent:mail": {"max_concurrent": 4},
    }
    await queue.add_many([NewJob(n) for n in range(20)])
    await peer.redis.set(peer.key(key), value)
    consumer = consume(**limits[key])
    claims = [claim for _ in range(3) for claim in (await consumer.settle([], 20)).claims]
    assert len(claims) in ((0, 4) if value.startswith("92") else (4,))


@pytest.mark.parametrize("kind", ["a list", "a hash"])
async def test_a_counter_of_another_type_is_replaced(queue, consume, peer, kind):
    for key in ("x:rate:mail", "ratelimit:minute:mail", "ratelimit:concurrent:mail"):
        if kind == "a list":
            await peer.redis.rpush(peer.key(key), "x")
        else:
            await peer.redis.hset(peer.key(key), "x", "y")
    await queue.add_many([NewJob(n) for n in range(9)])
    consumer = consume(rate=Rate(4, per=60.0), max_per_minute=5, max_concurrent=6)
    assert len((await consumer.settle([], 20)).claims) == 4
    assert not (await consumer.settle([], 20)).claims


@pytest.mark.parametrize("limit", ["maxPerMinute", "maxConcurrent"])
async def test_a_limit_that_lets_none_run_keeps_no_worker_busy(queue, consume, limit):
    await queue.add(1, extra={limit: 0})
    settled = await consume().settle([], 5)
    assert (list(settled.claims), settled.next_in) == ([], 0.2)
