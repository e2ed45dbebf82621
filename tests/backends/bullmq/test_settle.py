"""Claims and outcomes in batches, and in the face of what should not be there."""

from __future__ import annotations

import json
import time

import pytest
from redis.asyncio import Redis

from awaiting import assert_left
from jobwire import Rate
from jobwire.backends.bullmq.keys import Keys
from jobwire.backoff import Backoff
from jobwire.boundary import Backend, Claim, Completed, Consumer, Failed, Released, Snoozed, Verdict
from jobwire.embedded import Server
from jobwire.errors import InvalidOption
from jobwire.native import BullMQWorker
from jobwire.options import Keep, NewJob, Parent

from .dump import dump
from .jobs import add, claim, consumer
from .peer import node


async def event_names(redis: Redis, keys: Keys) -> list[str]:
    return [entry[b"event"].decode() for _, entry in await redis.xrange(keys.events)]


def ids(claims: list[Claim]) -> list[str]:
    return [one.job.id for one in claims]


@pytest.fixture
def worker(backend: Backend) -> Consumer:
    return consumer(backend)


async def test_a_batch_is_claimed_in_the_order_of_single_claims(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, *(NewJob(number, priority=number % 2) for number in range(6)), NewJob(6, lifo=True))
    claims = await claim(worker, 10)
    assert ids(claims) == ["7", "1", "3", "5", "2", "4", "6"]
    assert await redis.lrange(keys.active, 0, -1) == [b"6", b"4", b"2", b"5", b"3", b"1", b"7"]
    assert {await redis.get(keys.lock(one.job.id)) for one in claims} == {claims[0].token.encode()}


async def test_a_batch_completed_and_single_completions_leave_the_same(
    backend: Backend, redis: Redis, prefix: str
) -> None:
    for queue in ("batch", "single"):
        await add(backend, *(NewJob(number, name="n", keep_completed=2) for number in range(5)), queue=queue)
    together, apart = consumer(backend, "batch"), consumer(backend, "single")
    await together.settle([Completed(one, b"1") for one in await claim(together, 5)], 1)
    claims = [one for _ in range(5) for one in await claim(apart)]
    for one in claims[:4]:
        await apart.settle([Completed(one, b"1")], 0)
    await apart.settle([Completed(claims[4], b"1")], 1)
    found = await dump(redis, prefix)
    batch, single = (
        {key.partition(":")[2]: value for key, value in found.items() if key.startswith(f"{queue}:")}
        for queue in ("batch", "single")
    )
    assert batch == single


async def test_jobs_that_finish_out_of_order_leave_the_others_active_in_order(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, *(NewJob(number) for number in range(40)))
    claims = await claim(worker, 40)
    done = [claims[place] for place in (39, 3, 17, 0)]
    settled = await worker.settle([Completed(one, b"1") for one in done], 0)
    assert list(settled.verdicts) == [Verdict.COMPLETED] * 4
    left = [str(number) for number in range(40, 0, -1) if str(number) not in ids(done)]
    assert [job_id.decode() for job_id in await redis.lrange(keys.active, 0, -1)] == left


async def test_completions_of_several_claims_and_rules_are_answered_in_order(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    rules = (None, 0, None, 100, 0, 100)
    await add(backend, *(NewJob(number, keep_completed=keep) for number, keep in enumerate(rules)))
    claims = [*await claim(worker, 3), *await claim(worker, 2), *await claim(worker)]
    await redis.delete(keys.lock("3"))
    settled = await worker.settle([Completed(one, one.job.id.encode()) for one in claims[::-1]], 0)
    assert list(settled.verdicts) == [Verdict.LOST if one.job.id == "3" else Verdict.COMPLETED for one in claims[::-1]]
    assert {one: await redis.hget(keys.job(one), "returnvalue") for one in "123456"} == {
        "1": b"1", "2": None, "3": None, "4": b"4", "5": None, "6": b"6",
    }  # fmt: skip
    assert sorted(await redis.zrange(keys.completed, 0, -1)) == [b"1", b"4", b"6"]
    assert await redis.lrange(keys.active, 0, -1) == [b"3"]


async def test_jobs_far_inside_the_active_list_are_taken_out_and_the_others_keep_their_order(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, *(NewJob(number) for number in range(40)))
    claims = await claim(worker, 40)
    done = [claims[39], claims[38], claims[0]]  # the first two are at the other end of the list
    settled = await worker.settle([Completed(one, b"1") for one in done], 0)
    assert list(settled.verdicts) == [Verdict.COMPLETED] * 3
    left = [one.job.id.encode() for one in claims[1:38]]
    assert await redis.lrange(keys.active, 0, -1) == left[::-1]


async def test_outcomes_of_every_kind_go_in_one_call_and_are_answered_in_order(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, *(NewJob(number, attempts=2) for number in range(6)))
    a, b, c, d, e, f = await claim(worker, 6)
    began = time.monotonic()
    settled = await worker.settle(
        [
            Failed(a, "late", delay=60.0),
            Completed(b, b"1"),
            Snoozed(c, 60.0),
            Failed(d, "over", final=True),
            Released(e),
            Failed(f, "again"),
        ],
        5,
    )
    assert_left(settled.next_in, of=60, since=began)
    assert list(settled.verdicts) == [
        Verdict.RETRIED,
        Verdict.COMPLETED,
        Verdict.SNOOZED,
        Verdict.FAILED,
        Verdict.RELEASED,
        Verdict.RETRIED,
    ]
    assert ids(list(settled.claims)) == [e.job.id, f.job.id]
    assert [one.job.attempts_made for one in settled.claims] == [0, 1]
    assert {job_id for job_id, _ in await redis.zrange(keys.delayed, 0, -1, withscores=True)} == {b"1", b"3"}


async def test_an_outcome_without_the_lock_is_refused_and_changes_nothing(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys, prefix: str
) -> None:
    await add(backend, *(NewJob(number, attempts=2) for number in range(7)))
    claims = await claim(worker, 7)
    await redis.delete(keys.lock("1"), keys.lock("4"))
    await redis.set(keys.lock("2"), "another")
    await redis.delete(keys.job("3"))
    await redis.lrem(keys.active, 1, "5")
    before = await dump(redis, prefix)
    outcomes = [*(Completed(one, b"1") for one in claims[:3]), Failed(claims[3], "boom"), Completed(claims[4], b"1")]
    settled = await worker.settle(outcomes, 0)
    assert list(settled.verdicts) == [Verdict.LOST] * 5
    assert await dump(redis, prefix) == before


async def test_a_good_outcome_lands_beside_refused_ones(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, *(NewJob(number) for number in range(3)))
    a, b, c = await claim(worker, 3)
    await redis.set(keys.lock("2"), "another")
    settled = await worker.settle([Completed(a, b"1"), Completed(b, b"1"), Completed(c, b"1"), Completed(a, b"2")], 0)
    assert list(settled.verdicts) == [Verdict.COMPLETED, Verdict.LOST, Verdict.COMPLETED, Verdict.LOST]
    assert await redis.lrange(keys.active, 0, -1) == [b"2"]
    assert await redis.hmget(keys.job("1"), "returnvalue", "atm") == [b"1", b"1"]


async def test_the_same_outcomes_sent_twice_are_lost_the_second_time(backend: Backend, worker: Consumer) -> None:
    await add(backend, NewJob(1), NewJob(2))
    outcomes = [Completed(one, b"1") for one in await claim(worker, 2)]
    await worker.settle(outcomes, 0)
    assert list((await worker.settle(outcomes, 0)).verdicts) == [Verdict.LOST] * 2


async def test_entries_that_are_no_jobs_do_not_stop_the_queue(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await redis.set(keys.job("text"), "not a hash")
    await redis.rpush(keys.wait, "text", "0:5")
    await redis.zadd(keys.prioritized, {"list": 1})
    await redis.rpush(keys.job("list"), "not a hash either")
    await redis.zadd(keys.delayed, {"text": 1})
    await add(backend, NewJob("good"), NewJob("urgent", priority=1))
    claims = await claim(worker, 10)
    assert [one.job.data for one in claims] == ["good", "urgent"]
    assert await redis.llen(keys.active) == 2
    assert await redis.zscore(keys.marker, "0") == 0


async def test_a_job_without_a_hash_is_doomed(backend: Backend, worker: Consumer, redis: Redis, keys: Keys) -> None:
    await redis.rpush(keys.wait, "ghost")
    [one] = await claim(worker)
    assert one.doomed == "the job's data is missing from the store"
    settled = await worker.settle([Failed(one, one.doomed, final=True)], 0)
    assert list(settled.verdicts) == [Verdict.FAILED]
    assert await redis.zrange(keys.failed, 0, -1) == [b"ghost"]


@pytest.mark.parametrize("data", [b"{broken", b'"\xff\xfe"', b""])
async def test_a_job_whose_data_is_no_json_is_doomed(
    data: bytes, backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, NewJob(1))
    await redis.hset(keys.job("1"), "data", data)
    [one] = await claim(worker)
    assert "can't be read" in (one.doomed or "")
    assert one.job.data is None
    assert one.job.raw["data"] == data


async def test_an_id_that_is_no_text_can_be_claimed_and_completed(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    odd = b"\xff\xfe"
    await redis.hset(keys.base.encode() + odd, mapping={"name": "n", "data": "1"})
    await redis.lpush(keys.wait, odd)
    [one] = await claim(worker)
    assert list((await worker.settle([Completed(one, b"1")], 0)).verdicts) == [Verdict.COMPLETED]
    assert await redis.zrange(keys.completed, 0, -1) == [odd]


async def test_a_job_that_stalled_too_often_is_doomed(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, NewJob(1))
    await redis.hset(keys.job("1"), "defa", "job stalled more than allowable limit")
    [one] = await claim(worker)
    assert one.doomed == "job stalled more than allowable limit"
    await worker.settle([Failed(one, one.doomed, final=True)], 0)
    assert await redis.hget(keys.job("1"), "defa") is None


async def test_a_job_started_too_often_is_doomed(backend: Backend) -> None:
    worker = consumer(backend, native=BullMQWorker(max_started_attempts=1))
    await add(backend, NewJob(1))
    [first] = await claim(worker)
    assert first.doomed is None
    [again] = (await worker.settle([Released(first)], 1)).claims
    assert again.doomed == "job started more than allowable limit"


@pytest.mark.parametrize("options", [{"speed": 1}, {"metrics": 0}, {"max_started_attempts": "one"}], ids=str)
def test_bad_native_options_of_a_worker_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        BullMQWorker(**options)  # type: ignore[arg-type]


async def test_a_claim_never_goes_over_the_global_concurrency(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, *(NewJob(number) for number in range(5)))
    await redis.hset(keys.meta, "concurrency", 3)
    claims = await claim(worker, 10)
    assert len(claims) == 3
    settled = await worker.settle([Completed(claims[0], b"1")], 10)
    assert len(settled.claims) == 1


async def test_a_claim_never_goes_over_the_rate_and_says_for_how_long(
    backend: Backend, redis: Redis, keys: Keys
) -> None:
    worker = consumer(backend, rate=Rate(3, per=20.0))
    await add(backend, *(NewJob(number) for number in range(5)))
    began = time.monotonic()
    assert len(await claim(worker, 10)) == 3
    settled = await worker.settle([], 10)
    assert_left(settled.blocked_for, of=20, since=began)
    assert not settled.claims
    await redis.delete(keys.limiter)
    assert len(await claim(worker, 10)) == 2


async def test_a_rate_limit_of_the_queue_goes_before_the_workers(backend: Backend, redis: Redis, keys: Keys) -> None:
    worker = consumer(backend, rate=Rate(5, per=20.0))
    await add(backend, *(NewJob(number) for number in range(5)))
    await redis.hset(keys.meta, mapping={"max": 1, "duration": 60_000})
    assert len(await claim(worker, 10)) == 1


async def test_a_parent_with_pending_children_fails_instead_of_completing(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, NewJob(1, id="R"))
    [parent] = await claim(worker)
    await add(backend, NewJob(2, id="c", parent=Parent("R", "q")))
    settled = await worker.settle([Completed(parent, b"1")], 0)
    assert list(settled.verdicts) == [Verdict.FAILED]
    assert await redis.hget(keys.job("R"), "failedReason") == b"the job has children that have not finished"


async def test_a_failed_job_keeps_the_stacks_of_its_runs(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, NewJob(1, attempts=3, extra={"stackTraceLimit": 2}))
    for run in range(3):
        [one] = await claim(worker)
        await worker.settle([Failed(one, f"E{run}", f"stack {run}")], 0)
    fields = await redis.hmget(keys.job("1"), "failedReason", "stacktrace", "atm", "ats")
    assert (fields[0], json.loads(fields[1]), fields[2:]) == (b"E2", ["stack 1", "stack 2"], [b"3", b"3"])


@pytest.mark.parametrize("stored", ["nan", "inf", "1.5", "-9223372036854775808", "0x1F", "9" * 40])
async def test_a_count_of_attempts_that_is_none_gives_a_job_no_endless_attempts(
    *, backend: Backend, worker: Consumer, redis: Redis, keys: Keys, stored: str
) -> None:
    await add(backend, NewJob(1, attempts=3))
    await redis.hset(keys.job("1"), "atm", stored)  # type: ignore[misc]
    verdicts: list[Verdict] = []
    for _ in range(4):
        if claims := await claim(worker, 1):
            verdicts += (await worker.settle([Failed(claims[0], "no")], 0)).verdicts
    assert verdicts[-1] is Verdict.FAILED, verdicts
    made = 31 if stored == "0x1F" else 0
    assert await redis.hget(keys.job("1"), "atm") == str(made + len(verdicts)).encode()  # type: ignore[misc]


async def test_a_custom_backoff_without_a_strategy_fails_with_the_reason(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, NewJob(1, attempts=3, backoff=Backoff.custom("slow")))
    [one] = await claim(worker)
    settled = await worker.settle([Failed(one, "boom")], 0)
    assert list(settled.verdicts) == [Verdict.FAILED]
    reason = b"boom (not retried: the worker has no backoff strategy for 'slow')"
    assert await redis.hget(keys.job("1"), "failedReason") == reason


async def test_finished_jobs_are_kept_by_age(backend: Backend, redis: Redis, keys: Keys) -> None:
    worker = consumer(backend, keep_completed=Keep(age=3600))
    await add(backend, NewJob(1), NewJob(2))
    first, second = await claim(worker, 2)
    await worker.settle([Completed(first, b"1")], 0)
    await redis.zadd(keys.completed, {"1": 1_000_000})
    await worker.settle([Completed(second, b"1")], 0)
    assert await redis.zrange(keys.completed, 0, -1) == [b"2"]
    assert not await redis.exists(keys.job("1"))


async def test_drained_is_told_once_when_the_last_job_has_finished(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, NewJob(1), NewJob(2))
    claims = await claim(worker, 2)
    await worker.settle([Completed(one, b"1") for one in claims], 5)
    await worker.settle([], 5)
    assert (await event_names(redis, keys)).count("drained") == 1


async def test_a_job_kept_back_by_bullmq_6_is_added_when_its_forerunner_ends(
    jobwire_valkey: Server, worker: Consumer, redis: Redis, keys: Keys, prefix: str
) -> None:
    """Node 6.7 leaves the latest refused job to whoever finishes the one that runs; so must we."""
    script = "const p = prefixes[0]; const q = queueOf(p); const deduplication = { id: 'k', keepLastIfActive: true };"
    theirs = f"{prefix}-node"
    first = "await q.add('a', { v: 1 }, { deduplication });"
    second = "await q.add('b', { v: 2 }, { priority: 2, deduplication });"
    run = """const w = new Worker('q', null, { connection, prefix: p, autorun: false }); const token = 't';
             const job = await w.getNextJob(token, { block: false });"""
    whole = f"{script} {first} {run} {second} await job.moveToCompleted(1, token, false);"
    await node(jobwire_valkey.url, [theirs], whole, peer="bullmq-6")

    await node(jobwire_valkey.url, [prefix], f"{script} {first}", peer="bullmq-6")
    [one] = await claim(worker)
    await node(jobwire_valkey.url, [prefix], f"{script} {second}", peer="bullmq-6")
    await worker.settle([Completed(one, b"1")], 0)

    assert await redis.hget(keys.job("2"), "data") == b'{"v":2}'
    assert await dump(redis, prefix) == await dump(redis, theirs)
