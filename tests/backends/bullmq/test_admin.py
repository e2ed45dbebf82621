"""What an operator may and may not do to jobs, and how much of the server's time it takes. That the stored state is
Node's own is in test_admin_as_node."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from redis.asyncio import Redis

from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Acted, Backend
from jobwire.errors import InvalidOption, WrongState
from jobwire.model import State

from .dump import dump


async def store(redis: Redis, keys: Keys, *ids: str, **fields: Any) -> None:
    whole = {"name": "n", "data": "{}", "opts": "{}", "timestamp": 1, "delay": 0, "priority": 0, **fields}
    async with redis.pipeline(transaction=False) as batch:
        for job_id in ids:
            batch.hset(keys.job(job_id), mapping=whole)
        await batch.execute()


async def left(redis: Redis, keys: Keys) -> list[str]:
    return sorted([key.decode() async for key in redis.scan_iter(match=f"{keys.base}*", count=100_000)])


async def test_each_job_of_a_call_has_its_own_answer(redis, keys, backend: Backend) -> None:
    await store(redis, keys, "bad", "ready", "later")
    await redis.zadd(keys.failed, {"bad": 5})
    await redis.lpush(keys.wait, "ready")
    await redis.zadd(keys.delayed, {"later": 2**50})

    ids = ["bad", "ready", "nobody", "later"]
    assert await backend.promote("q", ids) == [
        Acted.WRONG_STATE,
        Acted.WRONG_STATE,
        Acted.NOT_FOUND,
        Acted.DONE,
    ]
    assert await backend.retry("q", ids) == [Acted.DONE, Acted.WRONG_STATE, Acted.NOT_FOUND, Acted.WRONG_STATE]
    assert await redis.lrange(keys.wait, 0, -1) == [b"bad", b"later", b"ready"]


async def test_no_ids_are_no_work(backend: Backend) -> None:
    assert (await backend.retry("q", []), await backend.remove("q", []), await backend.get("q", [])) == ([], [], [])


async def test_a_retried_job_that_asked_to_run_first_does(redis, keys, backend: Backend) -> None:
    await store(redis, keys, "bad", opts='{"lifo":true}')
    await redis.zadd(keys.failed, {"bad": 5})
    await redis.lpush(keys.wait, "one", "two")

    await backend.retry("q", ["bad"])

    assert await redis.rpop(keys.wait) == b"bad"


async def test_a_retried_child_that_its_parent_had_ignored_is_waited_for_again(redis, keys, backend: Backend) -> None:
    parent = json.dumps({"id": "P", "queueKey": keys.qualified})
    await store(redis, keys, "child", parentKey=keys.job("P"), parent=parent)
    await store(redis, keys, "P")
    await redis.zadd(keys.failed, {"child": 5})
    await redis.hset(keys.ignored_failures("P"), keys.job("child"), "boom")

    assert await backend.retry("q", ["child"]) == [Acted.DONE]

    assert await redis.smembers(keys.dependencies("P")) == {keys.job("child").encode()}
    assert not await redis.exists(keys.ignored_failures("P"))


async def test_a_running_job_is_not_removed(redis, keys, backend: Backend) -> None:
    await store(redis, keys, "running")
    await redis.lpush(keys.active, "running")
    await redis.set(keys.lock("running"), "someone")

    assert await backend.remove("q", ["running"]) == [Acted.LOCKED]

    assert await redis.exists(keys.job("running"), keys.active, keys.lock("running")) == 3


async def test_a_parent_is_not_removed_while_a_child_is_running_in_another_queue(redis, keys, backend: Backend) -> None:
    children = Keys(keys.prefix, "children")
    await redis.set(children.id, 1)
    await store(redis, keys, "P")
    await store(redis, children, "c")
    await redis.zadd(keys.waiting_children, {"P": 1})
    await redis.sadd(keys.dependencies("P"), children.job("c"))
    await redis.set(children.lock("c"), "someone")

    assert await backend.remove("q", ["P"]) == [Acted.LOCKED]
    await redis.delete(children.lock("c"))
    assert await backend.remove("q", ["P"]) == [Acted.DONE]

    assert not await redis.exists(keys.job("P"), keys.dependencies("P"), children.job("c"))


async def test_a_child_whose_id_has_colons_goes_with_its_parent(redis, keys, backend: Backend) -> None:
    children = Keys(keys.prefix, "children")
    await redis.hset(children.meta, "opts.maxLenEvents", 10000)
    await store(redis, keys, "P")
    await store(redis, children, "a:b:c")
    await redis.lpush(children.wait, "a:b:c")
    await redis.zadd(keys.waiting_children, {"P": 1})
    await redis.sadd(keys.dependencies("P"), children.job("a:b:c"))

    assert await backend.remove("q", ["P"]) == [Acted.DONE]

    assert not await redis.exists(children.job("a:b:c"), children.wait)


async def test_removing_the_last_trace_of_a_job_says_that_there_is_none(redis, keys, backend: Backend) -> None:
    await redis.lpush(keys.wait, "ghost")

    assert await backend.remove("q", ["ghost"]) == [Acted.NOT_FOUND]

    assert await left(redis, keys) == []


@pytest.mark.parametrize("how", ["remove", "drain", "clean", "obliterate"])
async def test_a_unique_jobs_follower_that_bullmq_6_keeps_goes_with_it(how: str, redis, keys, backend: Backend) -> None:
    await store(redis, keys, "owner", deid="k")
    await redis.lpush(keys.wait, "owner")
    await redis.set(keys.unique("k"), "owner")
    await redis.hset(keys.unique_pending("k"), mapping={"name": "n", "data": "{}"})

    match how:
        case "remove":
            await backend.remove("q", ["owner"])
        case "drain":
            await backend.drain("q", delayed=False)
        case "clean":
            await backend.clean("q", State.WAITING, 0, 0)
        case _:
            await backend.obliterate("q", force=False)

    assert not await redis.exists(keys.job("owner"), keys.unique("k"), keys.unique_pending("k"))


async def scheduled(redis: Redis, keys: Keys, key: str) -> str:
    job_id = keys.scheduled_job_id(key, 1_794_755_000_123)
    await store(redis, keys, job_id, rjk=key)
    await redis.zadd(keys.repeat, {key: 1_794_755_000_123})
    await redis.hset(keys.scheduler(key), mapping={"name": key, "every": 1000, "ic": 1})
    return job_id


@pytest.mark.parametrize("place", ["wait", "paused"])
async def test_drain_keeps_the_jobs_that_schedules_need_in_their_places(
    place: str, redis, keys, backend: Backend
) -> None:
    first, last = await scheduled(redis, keys, "first"), await scheduled(redis, keys, "last")
    ids = [f"j{n}" for n in range(2500)]
    await store(redis, keys, *ids)
    await redis.lpush(keys.base + place, first, *ids, last)

    await backend.drain("q", delayed=False)

    assert await redis.lrange(keys.base + place, 0, -1) == [last.encode(), first.encode()]
    assert await redis.exists(keys.job(first), keys.job(last)) == 2
    assert await redis.exists(*map(keys.job, ids)) == 0


async def test_drain_takes_prioritized_and_delayed_jobs_in_steps(redis, keys, backend: Backend) -> None:
    kept = await scheduled(redis, keys, "s")
    ids = [f"j{n}" for n in range(2100)]
    await store(redis, keys, *ids)
    await redis.zadd(keys.prioritized, {job_id: n for n, job_id in enumerate(ids[:1050])})
    await redis.zadd(keys.delayed, {kept: 5, **{job_id: n for n, job_id in enumerate(ids[1050:])}})

    await backend.drain("q", delayed=True)

    assert await redis.zrange(keys.delayed, 0, -1) == [kept.encode()]
    assert await redis.exists(keys.prioritized, *map(keys.job, ids)) == 0


async def test_drain_leaves_what_runs_or_has_finished(redis, keys, backend: Backend) -> None:
    await store(redis, keys, *"acfd")
    await redis.lpush(keys.active, "a")
    await redis.zadd(keys.completed, {"c": 1})
    await redis.zadd(keys.failed, {"f": 1})
    await redis.zadd(keys.delayed, {"d": 1})
    before = await dump(redis, keys.prefix)

    await backend.drain("q", delayed=False)

    assert await dump(redis, keys.prefix) == before


@pytest.mark.parametrize("place", ["wait", "paused", "active"])
async def test_clean_takes_the_old_from_among_the_young_and_keeps_the_order(
    place, redis, keys, backend: Backend
) -> None:
    now = int(time.time() * 1000)
    ids = [f"j{n}" for n in range(2400)]
    await store(redis, keys, *ids[::2], timestamp=now - 60_000)
    await store(redis, keys, *ids[1::2], timestamp=now)
    await redis.lpush(keys.base + place, *ids)

    state = State.ACTIVE if place == "active" else State.WAITING
    gone = await backend.clean("q", state, 30, 0)

    assert gone == ids[::2]
    assert [item.decode() for item in await redis.lrange(keys.base + place, 0, -1)] == ids[:0:-2]
    assert await redis.exists(*map(keys.job, ids)) == 1200


async def test_clean_stops_at_its_limit_with_the_oldest(redis, keys, backend: Backend) -> None:
    ids = [f"j{n}" for n in range(2400)]
    await store(redis, keys, *ids)
    await redis.zadd(keys.completed, {job_id: n for n, job_id in enumerate(ids)})

    assert await backend.clean("q", State.COMPLETED, 0, 1700) == ids[:1700]
    assert await redis.zcard(keys.completed) == 700


async def test_clean_of_waiting_jobs_counts_all_places_against_the_limit(redis, keys, backend: Backend) -> None:
    await store(redis, keys, *"abcdef")
    await redis.lpush(keys.paused, *"ab")
    await redis.lpush(keys.wait, *"cd")
    await redis.zadd(keys.prioritized, {"e": 1, "f": 2})

    assert await backend.clean("q", State.WAITING, 0, 5) == [*"abcde"]


async def test_clean_of_active_jobs_takes_only_those_that_nobody_runs(redis, keys, backend: Backend) -> None:
    await store(redis, keys, "running", "dead", processedOn=1)
    await redis.lpush(keys.active, "running", "dead")
    await redis.set(keys.lock("running"), "someone")

    assert await backend.clean("q", State.ACTIVE, 0, 0) == ["dead"]
    assert await redis.lrange(keys.active, 0, -1) == [b"running"]


async def test_clean_refuses_a_state_that_bullmq_cannot_clean(backend: Backend) -> None:
    with pytest.raises(InvalidOption, match="state"):
        await backend.clean("q", State.WAITING_CHILDREN, 0, 0)


async def fill_every_corner(redis: Redis, keys: Keys, completed: int = 2300) -> None:
    ids = [f"j{n}" for n in range(completed)]
    await store(redis, keys, *ids, "w", "p", "r", "d", "a", "c", "f", "k", "u")
    await redis.zadd(keys.completed, {job_id: n for n, job_id in enumerate(ids)})
    await redis.lpush(keys.wait, "w")
    await redis.lpush(keys.paused, "p")
    await redis.zadd(keys.prioritized, {"r": 1})
    await redis.zadd(keys.delayed, {"d": 1, await scheduled(redis, keys, "s"): 2})
    await redis.zadd(keys.completed, {"c": 1})
    await redis.zadd(keys.failed, {"f": 1, "u": 2})
    await redis.zadd(keys.waiting_children, {"k": 1})
    await redis.hset(keys.job("u"), "deid", "unique")
    await redis.set(keys.unique("unique"), "u", px=3_600_000)
    await redis.rpush(keys.logs("c"), "line")
    await redis.sadd(keys.dependencies("k"), f"{keys.prefix}:other:1")
    for key in (keys.id, keys.priority_counter, keys.limiter, keys.stalled_check):
        await redis.set(key, 1)
    await redis.sadd(keys.stalled, "a")
    await redis.zadd(keys.marker, {"0": 0})
    await redis.hset(keys.metrics_completed, "count", 1)
    await redis.lpush(keys.metrics_completed + ":data", 1)
    await redis.hset(keys.meta, "version", "bullmq:5.62.0")


async def test_obliterate_leaves_nothing_of_the_queue(redis, keys, backend: Backend) -> None:
    await fill_every_corner(redis, keys)
    await redis.lpush(keys.active, "a")
    await redis.set(keys.lock("a"), "someone")
    neighbour = Keys(keys.prefix, "q2")
    await store(redis, neighbour, "safe")

    await backend.obliterate("q", force=True)

    assert await left(redis, keys) == []
    assert await redis.exists(neighbour.job("safe"))


async def test_obliterate_without_force_leaves_a_working_queue_as_it_was(redis, keys, backend: Backend) -> None:
    await fill_every_corner(redis, keys, completed=20)
    await redis.lpush(keys.active, "a")
    before = await dump(redis, keys.prefix)

    with pytest.raises(WrongState, match="active"):
        await backend.obliterate("q", force=False)

    assert await dump(redis, keys.prefix) == before


@pytest.mark.slow
async def test_a_deletion_of_many_steps_leaves_nothing(redis, keys, backend: Backend) -> None:
    ids = [f"j{n}" for n in range(20_000)]
    await store(redis, keys, *ids)
    await redis.lpush(keys.wait, *ids[:10_000])
    await redis.zadd(keys.completed, {job_id: n for n, job_id in enumerate(ids[10_000:])})

    await backend.clean("q", State.COMPLETED, 0, 0)
    await backend.drain("q", delayed=True)

    assert await left(redis, keys) == [keys.events]
