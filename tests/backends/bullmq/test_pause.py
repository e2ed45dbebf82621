"""Pausing a queue that BullMQ 5 and 6 clients share: 5 keeps waiting jobs in `paused`, 6 leaves them in `wait`, and a
plain rename from one to the other would drop whatever the target held."""

from __future__ import annotations

from typing import Any

from redis.asyncio import Redis

from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Backend

from .peer import node


async def listed(redis: Redis, key: str) -> list[str]:
    return [item.decode() for item in await redis.lrange(key, 0, -1)]


async def event_names(redis: Redis, keys: Keys) -> list[str]:
    return [fields[b"event"].decode() for _, fields in await redis.xrange(keys.events)]


async def store_jobs(redis: Redis, keys: Keys, *ids: str) -> None:
    for job_id in ids:
        fields: dict[str, Any] = {"name": "n", "data": "{}", "opts": "{}", "timestamp": 1, "delay": 0, "priority": 0}
        await redis.hset(keys.job(job_id), mapping=fields)


async def test_pause_puts_the_waiting_jobs_under_the_name_that_bullmq_5_gives_them(redis, keys, backend: Backend):
    await redis.lpush(keys.wait, "1", "2", "3")
    await redis.zadd(keys.marker, {"0": 0})

    await backend.pause.pause("q")

    assert await listed(redis, keys.paused) == ["3", "2", "1"]
    assert not await redis.exists(keys.wait, keys.marker)
    assert await redis.hget(keys.meta, "paused") == b"1"
    assert await event_names(redis, keys) == ["paused"]
    assert await backend.pause.paused("q")


async def test_resume_puts_them_back_and_wakes_a_worker(redis, keys, backend: Backend):
    await redis.lpush(keys.wait, "1", "2", "3")
    await backend.pause.pause("q")

    await backend.pause.resume("q")

    assert await listed(redis, keys.wait) == ["3", "2", "1"]
    assert not await redis.exists(keys.paused)
    assert await redis.zrange(keys.marker, 0, -1) == [b"0"]
    assert not await redis.hexists(keys.meta, "paused")
    assert await event_names(redis, keys) == ["paused", "resumed"]
    assert not await backend.pause.paused("q")


async def test_resume_of_an_empty_queue_tells_workers_when_the_next_job_is_due(redis, keys, backend: Backend):
    await redis.zadd(keys.delayed, {"1": 1_900_000_000_000 * 4096})
    await backend.pause.pause("q")

    await backend.pause.resume("q")

    assert await redis.zrange(keys.marker, 0, -1, withscores=True) == [(b"1", 1_900_000_000_000.0)]


async def test_resume_after_a_pause_by_bullmq_6_wakes_a_worker_for_the_jobs_it_left_in_wait(
    redis, keys, backend: Backend
):
    await redis.lpush(keys.wait, "1")
    await redis.hset(keys.meta, "paused", 1)

    await backend.pause.resume("q")

    assert await listed(redis, keys.wait) == ["1"]
    assert await redis.zrange(keys.marker, 0, -1) == [b"0"]


async def test_resume_keeps_what_bullmq_6_left_in_wait_when_a_bullmq_5_producer_added_to_paused(
    redis, keys, backend: Backend
):
    await redis.hset(keys.meta, "paused", 1)
    await redis.lpush(keys.wait, "six-1", "six-2", "six-3")
    await redis.lpush(keys.paused, "five-1")

    await backend.pause.resume("q")

    assert await listed(redis, keys.wait) == ["six-3", "six-2", "six-1", "five-1"]
    assert not await redis.exists(keys.paused)


async def test_resume_keeps_the_order_when_the_paused_list_is_the_longer_one(redis, keys, backend: Backend):
    await redis.hset(keys.meta, "paused", 1)
    await redis.lpush(keys.wait, "six-1", "six-2")
    await redis.lpush(keys.paused, "five-1", "five-2", "five-3")

    await backend.pause.resume("q")

    assert await listed(redis, keys.wait) == ["six-2", "six-1", "five-3", "five-2", "five-1"]
    assert not await redis.exists(keys.paused)


async def test_pausing_again_keeps_the_paused_jobs_when_a_bullmq_6_producer_added_to_wait(
    redis, keys, backend: Backend
):
    await redis.hset(keys.meta, "paused", 1)
    await redis.lpush(keys.paused, "five-1", "five-2", "five-3")
    await redis.lpush(keys.wait, "six-1", "six-2")

    await backend.pause.pause("q")

    assert await listed(redis, keys.paused) == ["six-2", "six-1", "five-3", "five-2", "five-1"]
    assert not await redis.exists(keys.wait)


async def test_pausing_again_keeps_the_order_when_wait_is_the_longer_one(redis, keys, backend: Backend):
    await redis.hset(keys.meta, "paused", 1)
    await redis.lpush(keys.paused, "five-1")
    await redis.lpush(keys.wait, *(f"six-{n}" for n in range(2500)))

    await backend.pause.pause("q")

    assert await listed(redis, keys.paused) == [*(f"six-{n}" for n in reversed(range(2500))), "five-1"]
    assert not await redis.exists(keys.wait)


async def test_two_long_lists_are_joined_without_losing_or_swapping_a_job(redis, keys, backend: Backend):
    await redis.hset(keys.meta, "paused", 1)
    await redis.lpush(keys.paused, *(f"five-{n}" for n in range(2001)))
    await redis.lpush(keys.wait, *(f"six-{n}" for n in range(1999)))
    in_order = [*(f"six-{n}" for n in reversed(range(1999))), *(f"five-{n}" for n in reversed(range(2001)))]

    await backend.pause.pause("q")
    assert await listed(redis, keys.paused) == in_order
    await backend.pause.resume("q")
    assert await listed(redis, keys.wait) == in_order


async def test_obliterate_leaves_no_job_that_bullmq_6_left_in_wait(redis, keys, backend: Backend):
    await store_jobs(redis, keys, "six-1", "five-1")
    await redis.hset(keys.meta, "paused", 1)
    await redis.lpush(keys.wait, "six-1")
    await redis.lpush(keys.paused, "five-1")

    await backend.obliterate("q", force=False)

    assert [key async for key in redis.scan_iter(match=f"{keys.base}*", count=100_000)] == []


async def test_jobs_in_both_lists_count_as_waiting_and_can_be_removed(redis, keys, backend: Backend):
    await store_jobs(redis, keys, "six-1", "five-1")
    await redis.hset(keys.meta, "paused", 1)
    await redis.lpush(keys.wait, "six-1")
    await redis.lpush(keys.paused, "five-1")

    assert (await backend.counts("q"))["waiting"] == 2
    assert [answer.value for answer in await backend.remove("q", ["six-1", "five-1"])] == ["done", "done"]

    assert not await redis.exists(keys.wait, keys.paused, keys.job("six-1"), keys.job("five-1"))


async def test_drain_empties_both_lists(redis, keys, backend: Backend):
    await store_jobs(redis, keys, "six-1", "five-1")
    await redis.lpush(keys.wait, "six-1")
    await redis.lpush(keys.paused, "five-1")

    await backend.drain("q", delayed=False)

    assert not await redis.exists(keys.wait, keys.paused, keys.job("six-1"), keys.job("five-1"))


async def test_no_job_is_lost_when_both_versions_of_node_add_while_each_of_us_pauses_and_resumes(
    jobwire_valkey, prefix, redis, keys, backend: Backend
):
    """Node 6 adds to `wait` of a paused queue, Node 5 to `paused`; in the end all jobs stand in `wait`, once each."""
    url = jobwire_valkey.url
    add = "const q = queueOf(prefixes[0]); for (const n of [1, 2]) await q.add('n', {}, { jobId: `%s-${n}` });"
    await node(url, [prefix], add % "before" + "await q.pause();", peer="bullmq-6")
    await node(url, [prefix], add % "five")
    await backend.pause.pause("q")
    await node(url, [prefix], add % "six", peer="bullmq-6")
    await backend.pause.pause("q")
    await node(url, [prefix], add % "five-again")

    await backend.pause.resume("q")

    waiting = await listed(redis, keys.wait)
    assert sorted(waiting) == sorted(f"{who}-{n}" for who in ("before", "five", "six", "five-again") for n in (1, 2))
    assert not await redis.exists(keys.paused)
