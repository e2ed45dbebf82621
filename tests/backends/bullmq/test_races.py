"""A completion and the check for stalled jobs meet: whoever comes first has it, and the job completes once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from redis.asyncio import Redis

from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Backend, Claim, Completed, Consumer, Failed, Verdict
from jobwire.embedded import Server
from jobwire.options import NewJob

from .jobs import add, claim, consumer
from .peer import node

FIRST, SECOND = b'"first"', b'"second"'


async def check(worker: Consumer, redis: Redis, keys: Keys) -> list[str]:
    """The next check for stalled jobs, its time having come."""
    await redis.delete(keys.stalled_check)
    recovery = next(duty for duty in worker.duties() if duty.name == "recover")
    return list((await recovery.run()).recovered)


async def complete(worker: Consumer, one: Claim, result: bytes) -> Verdict:
    return (await worker.settle([Completed(one, result)], 0)).verdicts[0]


async def completions(redis: Redis, keys: Keys) -> list[bytes]:
    """What the queue's listeners were told."""
    return [fields[b"returnvalue"] for _, fields in await redis.xrange(keys.events) if fields[b"event"] == b"completed"]


@pytest.fixture
async def claimed(backend: Backend, redis: Redis, keys: Keys) -> tuple[Consumer, Claim]:
    """A job that is held, and was seen active by a check."""
    worker = consumer(backend)
    await add(backend, NewJob("work"))
    [one] = await claim(worker)
    assert await check(worker, redis, keys) == []
    return worker, one


async def test_completed_before_the_check(
    claimed: tuple[Consumer, Claim], backend: Backend, redis: Redis, keys: Keys
) -> None:
    worker, one = claimed

    assert await complete(worker, one, FIRST) is Verdict.COMPLETED
    assert await check(consumer(backend), redis, keys) == []

    assert await claim(worker) == []
    assert await completions(redis, keys) == [FIRST]
    assert await redis.hmget(keys.job("1"), "stc", "atm") == [None, b"1"]


async def test_taken_back_by_the_check_before_it_is_completed(
    claimed: tuple[Consumer, Claim], backend: Backend, redis: Redis, keys: Keys
) -> None:
    worker, one = claimed
    other = consumer(backend)

    await redis.delete(keys.lock("1"))
    assert await check(other, redis, keys) == ["1"]
    assert await complete(worker, one, FIRST) is Verdict.LOST
    [again] = await claim(other)
    assert await complete(worker, one, FIRST) is Verdict.LOST
    assert await complete(other, again, SECOND) is Verdict.COMPLETED

    assert await completions(redis, keys) == [SECOND]
    assert await redis.hmget(keys.job("1"), "returnvalue", "stc", "atm") == [SECOND, b"1", b"1"]


async def test_the_lock_ran_out_and_no_check_came_by(
    claimed: tuple[Consumer, Claim], backend: Backend, redis: Redis, keys: Keys
) -> None:
    worker, one = claimed

    await redis.delete(keys.lock("1"))
    assert await complete(worker, one, FIRST) is Verdict.LOST
    assert await redis.lrange(keys.active, 0, -1) == [b"1"], "what was refused has changed nothing"
    assert await check(consumer(backend), redis, keys) == ["1"]
    [again] = await claim(worker)
    assert await complete(worker, again, SECOND) is Verdict.COMPLETED

    assert await completions(redis, keys) == [SECOND]


async def test_a_failure_after_the_job_was_taken_back_charges_no_attempt(
    claimed: tuple[Consumer, Claim], backend: Backend, redis: Redis, keys: Keys
) -> None:
    worker, one = claimed

    await redis.delete(keys.lock("1"))
    assert await check(consumer(backend), redis, keys) == ["1"]
    assert (await worker.settle([Failed(one, "late")], 0)).verdicts == [Verdict.LOST]

    assert await redis.hmget(keys.job("1"), "atm", "failedReason") == [None, None]
    assert await redis.lrange(keys.wait, 0, -1) == [b"1"]


async def test_node_takes_back_what_we_complete_too_late(
    claimed: tuple[Consumer, Claim], jobwire_valkey: Server, prefix: str, redis: Redis, keys: Keys
) -> None:
    worker, one = claimed

    await redis.delete(keys.lock("1"), keys.stalled_check)
    script = """
    const w = new Worker("q", null, { connection, prefix: prefixes[0], autorun: false }); w.on("error", () => {});
    w.on("stalled", (id) => say(id)); await w.moveStalledJobsToWait();
    const job = await w.getNextJob("theirs:0", { block: false });
    await job.moveToCompleted("second", "theirs:0", false);
    """
    assert await node(jobwire_valkey.url, [prefix], script) == ["1"]
    assert await complete(worker, one, FIRST) is Verdict.LOST

    assert await completions(redis, keys) == [SECOND]


async def test_many_at_once_have_one_winner_each(
    backend: Backend, redis: Redis, keys: Keys, jobwire_valkey: Server
) -> None:
    """Completions and checks in any order, from two connections: each job is completed or taken back, never both."""
    worker = consumer(backend)
    twin = backend.twin()
    await twin.open()
    checker = consumer(twin)
    jobs = 300
    await add(backend, *(NewJob(number) for number in range(jobs)))
    held = await claim(worker, jobs)
    await check(checker, redis, keys)

    async def lose(ids: Sequence[str]) -> None:
        for job_id in ids:
            await redis.delete(keys.lock(job_id))

    async def finish() -> list[Verdict]:
        verdicts: list[Verdict] = []
        for start in range(0, jobs, 10):
            outcomes = [Completed(one, FIRST) for one in held[start : start + 10]]
            verdicts += (await worker.settle(outcomes, 0)).verdicts
        return verdicts

    async def checks() -> list[str]:
        found: list[str] = []
        for _ in range(10):
            found += await check(checker, redis, keys)
        return found

    ids = [one.job.id for one in held]
    _, verdicts, taken = await asyncio.gather(lose(ids[::-2]), finish(), checks())
    taken += await check(checker, redis, keys)
    taken += await check(checker, redis, keys)

    completed = {job_id for job_id, verdict in zip(ids, verdicts, strict=True) if verdict is Verdict.COMPLETED}
    assert completed.isdisjoint(taken)
    assert len(taken) == len(set(taken))
    assert completed | set(taken) == set(ids)
    assert {raw.decode() for raw in await redis.zrange(keys.completed, 0, -1)} == completed
    assert {raw.decode() for raw in await redis.lrange(keys.wait, 0, -1)} == set(taken)
    assert len(await completions(redis, keys)) == len(completed)
    await twin.close()
