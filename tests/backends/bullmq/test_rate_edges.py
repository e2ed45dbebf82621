"""A rate limit at the edges of its window: the key about to expire, or in a state that only another client leaves."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from jobwire import Rate
from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Backend
from jobwire.options import NewJob

from .jobs import add, claim, consumer

LIMIT = 5


async def test_a_full_limiter_in_its_last_millisecond_lets_no_more_than_the_limit_through(
    backend: Backend, redis: Redis, keys: Keys
) -> None:
    """Each try sets the key to expire in a millisecond; about one in six claims then finds it with 0 ms left."""
    worker = consumer(backend, rate=Rate(LIMIT, per=60.0))
    await add(backend, *[NewJob(n) for n in range(2000)])
    claimed: list[int] = []
    for _ in range(150):
        await redis.set(keys.limiter, LIMIT, px=1)
        claimed.append(len(await claim(worker, 50)))
    assert set(claimed) <= {0, LIMIT}, claimed


@pytest.mark.parametrize("value", ["5", "7", "9007199254740991", "five"])
async def test_a_limiter_without_a_time_to_live_starts_a_window(
    backend: Backend, redis: Redis, keys: Keys, value: str
) -> None:
    worker = consumer(backend, rate=Rate(LIMIT, per=60.0))
    await add(backend, *[NewJob(n) for n in range(50)])
    await redis.set(keys.limiter, value)
    assert len(await claim(worker, 50)) == LIMIT
    assert await redis.get(keys.limiter) == b"5"
    assert 50_000 < await redis.pttl(keys.limiter) <= 60_000
    assert await claim(worker, 50) == []


async def test_a_limiter_of_a_foreign_type_starts_a_window(backend: Backend, redis: Redis, keys: Keys) -> None:
    worker = consumer(backend, rate=Rate(LIMIT, per=60.0))
    await add(backend, *[NewJob(n) for n in range(50)])
    await redis.rpush(keys.limiter, "x")
    assert len(await claim(worker, 50)) == LIMIT


async def test_a_half_used_limiter_without_a_time_to_live_ends_with_its_count(
    backend: Backend, redis: Redis, keys: Keys
) -> None:
    worker = consumer(backend, rate=Rate(LIMIT, per=60.0))
    await add(backend, *[NewJob(n) for n in range(50)])
    await redis.set(keys.limiter, 3)
    assert [len(await claim(worker, 50)) for _ in range(3)] == [2, LIMIT, 0]


async def test_a_queue_wide_limit_without_a_duration_still_bounds_each_claim(
    backend: Backend, redis: Redis, keys: Keys
) -> None:
    await redis.hset(keys.meta, "max", LIMIT)
    await add(backend, *[NewJob(n) for n in range(50)])
    await redis.set(keys.limiter, LIMIT)
    assert len(await claim(consumer(backend), 50)) == LIMIT


@pytest.mark.parametrize(
    "settings",
    [
        {"max": "5", "duration": "NaN"},
        {"max": "9" * 40, "duration": "1000"},
        {"opts.maxLenEvents": "many"},
        {"opts.maxLenEvents": "9" * 40},
    ],
    ids=str,
)
async def test_settings_of_a_queue_that_are_no_numbers_stop_neither_producers_nor_workers(
    backend: Backend, redis: Redis, keys: Keys, settings: dict[str, str]
) -> None:
    await redis.hset(keys.meta, mapping=settings)
    await add(backend, *[NewJob(n) for n in range(4)])
    assert len(await claim(consumer(backend, rate=None), 4)) == 4
    assert backend.limits is not None
    assert (await backend.limits.limits("q")).concurrency is None
