"""Leases are renewed while they are ours, and what dead workers left is taken back as Node BullMQ 5.62 does."""

from __future__ import annotations

import json
import time

from redis.asyncio import Redis

from awaiting import assert_left
from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Backend, Completed, Consumer
from jobwire.options import NewJob

from .conftest import Same
from .jobs import add, claim, consumer

LIMIT = b"job stalled more than allowable limit"


async def recover(worker: Consumer) -> list[str]:
    [duty] = worker.duties()
    return list((await duty.run()).recovered)


async def lose_locks(redis: Redis, keys: Keys, *job_ids: str) -> None:
    await redis.delete(keys.stalled_check, *(keys.lock(job_id) for job_id in job_ids))


async def test_only_leases_that_are_ours_are_renewed(backend: Backend, redis: Redis, keys: Keys) -> None:
    worker = consumer(backend, lease=50.0)
    await add(backend, *(NewJob(number) for number in range(3)))
    claims = await claim(worker, 3)
    await redis.sadd(keys.stalled, "1", "2", "3")
    await redis.pexpire(keys.lock("1"), 1000)
    await redis.set(keys.lock("2"), "another")
    await redis.delete(keys.lock("3"))
    began = time.monotonic()
    assert [one.job.id for one in await worker.extend(claims)] == ["2", "3"]
    assert_left(await redis.pttl(keys.lock("1")) / 1000, of=50, since=began)
    assert await redis.get(keys.lock("2")) == b"another"
    assert not await redis.exists(keys.lock("3"))
    assert await redis.smembers(keys.stalled) == {b"2", b"3"}


async def test_thousands_of_leases_are_renewed(backend: Backend) -> None:
    worker = consumer(backend)
    await add(backend, *(NewJob(number) for number in range(1200)))
    assert list(await worker.extend(await claim(worker, 1200))) == []


async def test_a_job_without_a_lock_comes_back_at_the_second_check(backend: Backend, redis: Redis, keys: Keys) -> None:
    worker = consumer(backend)
    await add(backend, NewJob(1), NewJob(2))
    lost, held = await claim(worker, 2)
    await lose_locks(redis, keys, lost.job.id)
    assert await recover(worker) == []
    await lose_locks(redis, keys)
    assert await recover(worker) == [lost.job.id]
    assert await redis.lrange(keys.wait, 0, -1) == [b"1"]
    assert await redis.lrange(keys.active, 0, -1) == [b"2"]
    assert await redis.hmget(keys.job("1"), "stc", "defa", "atm") == [b"1", None, None]
    [again] = await claim(worker)
    assert (again.job.id, again.job.attempts_made) == ("1", 0)
    assert again.token != lost.token
    assert held.token == lost.token


async def test_checks_of_all_workers_share_one_period(backend: Backend, redis: Redis, keys: Keys) -> None:
    began = time.monotonic()
    await recover(consumer(backend, recover_every=20.0))
    assert_left(await redis.pttl(keys.stalled_check) / 1000, of=20, since=began)
    await add(backend, NewJob(1))
    await claim(consumer(backend))
    await redis.sadd(keys.stalled, "1")
    await redis.delete(keys.lock("1"))
    assert await recover(consumer(backend)) == []


async def test_ten_thousand_active_jobs_that_are_locked_stay_where_they_are(
    backend: Backend, redis: Redis, keys: Keys
) -> None:
    worker = consumer(backend)
    ids = [str(number) for number in range(10_000)]
    await redis.lpush(keys.active, *ids)
    for start in range(0, len(ids), 1000):
        await redis.mset({keys.lock(job_id): "held" for job_id in ids[start : start + 1000]})
    await recover(worker)
    assert await redis.scard(keys.stalled) == 10_000
    await redis.delete(keys.stalled_check)
    assert await recover(worker) == []
    assert await redis.llen(keys.active) == 10_000


async def test_ten_thousand_dead_jobs_come_back_in_one_check(backend: Backend, redis: Redis, keys: Keys) -> None:
    worker = consumer(backend)
    ids = [str(number) for number in range(10_000)]
    await redis.lpush(keys.active, *ids)
    await redis.sadd(keys.stalled, *ids)
    recovered = await recover(worker)
    assert sorted(recovered) == sorted(ids)
    assert await redis.llen(keys.active) == 0
    assert [job_id.decode() for job_id in await redis.lrange(keys.wait, 0, -1)] == recovered


async def test_a_scheduled_job_may_stall_for_ever(backend: Backend, redis: Redis, keys: Keys) -> None:
    worker = consumer(backend, max_stalled=0)
    await add(backend, NewJob(1), NewJob(2))
    await redis.hset(keys.job("1"), "opts", json.dumps({"repeat": {"every": 1000}}))
    await claim(worker, 2)
    await redis.sadd(keys.stalled, "1", "2")
    await lose_locks(redis, keys, "1", "2")
    await recover(worker)
    assert await redis.hget(keys.job("1"), "defa") is None
    assert await redis.hget(keys.job("2"), "defa") == LIMIT


async def test_an_active_entry_that_is_no_job_does_not_stop_the_check(
    backend: Backend, redis: Redis, keys: Keys
) -> None:
    worker = consumer(backend)
    await redis.set(keys.job("text"), "not a hash")
    await redis.lpush(keys.active, "text")
    await redis.sadd(keys.stalled, "text")
    assert await recover(worker) == ["text"]
    await add(backend, NewJob("good"))
    assert [one.job.data for one in await claim(worker, 5)] == ["good"]


async def test_a_job_that_was_taken_back_is_lost_to_its_old_worker(backend: Backend, redis: Redis, keys: Keys) -> None:
    slow = consumer(backend)
    await add(backend, NewJob(1))
    [mine] = await claim(slow)
    await redis.sadd(keys.stalled, "1")
    await lose_locks(redis, keys, "1")
    await recover(slow)
    fresh = consumer(backend)
    [theirs] = await claim(fresh)
    assert [verdict.value for verdict in (await slow.settle([Completed(mine, b"1")], 0)).verdicts] == ["lost"]
    assert [verdict.value for verdict in (await fresh.settle([Completed(theirs, b"2")], 0)).verdicts] == ["completed"]
    assert await redis.hget(keys.job("1"), "returnvalue") == b"2"


async def test_a_check_leaves_what_node_leaves(same_as_node: Same) -> None:
    worker = "const w = new Worker('q', null, { connection, prefix: p, autorun: false, maxStalledCount: 0 });"
    await same_as_node(
        f"""const q = queueOf(p); {worker}
            await q.add('n', {{}}, {{ jobId: 'a', attempts: 3 }});
            await q.add('n', {{}}, {{ jobId: 'b', priority: 3 }});
            await q.add('n', {{}}, {{ jobId: 'held' }});
            for (let i = 0; i < 3; i++) await w.getNextJob('t', {{ block: false }});
            await w.scripts.moveStalledJobsToWait(); const client = await q.client;
            await client.del(`${{p}}:q:a:lock`, `${{p}}:q:b:lock`, `${{p}}:q:stalled-check`, `${{p}}:q:marker`);""",
        f"{worker} await w.scripts.moveStalledJobsToWait();",
        lambda backend: recover(consumer(backend, max_stalled=0)),
    )
