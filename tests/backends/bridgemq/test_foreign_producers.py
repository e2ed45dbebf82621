"""Producers and workers that know nothing of our index: what they push is found, what they take is not taken again."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest

from awaiting import eventually
from jobwire import NewJob, Queue, Target
from jobwire.boundary import Completed
from jobwire.model import State


async def test_a_job_of_a_foreign_producer_is_run(peer, work, queue):
    job_id = await peer.dispatch("mail", {"to": "b@example.com"})

    async def handler(job):
        return job.data["to"]

    async with work(handler):
        assert await queue.wait(job_id, timeout=10) == "b@example.com"


async def test_an_idle_worker_finds_a_foreign_job_within_seconds(peer, work, no_polling):
    seen = asyncio.Event()

    async def handler(job):
        seen.set()

    async with work(handler) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        await peer.dispatch("mail")
        await asyncio.wait_for(seen.wait(), 20)


async def test_a_backlog_of_another_type_keeps_no_idle_worker_busy_unless_a_peer_wrote_it(
    peer, queue, consume, connection
):
    idle = consume()
    await idle.settle([], 1)
    has_changed = idle._wakeup._has_changed
    async with Queue("letters", connection) as others:
        await others.add_many([NewJob(n) for n in range(50)])
        assert not await has_changed()
        await consume(queue="letters").settle([], 10)
        assert not await has_changed()
    await peer.dispatch("letters", 1)
    assert await has_changed(), "before it is in the index it may be of any type"
    await queue.add("mine")
    assert await has_changed()


async def test_foreign_pushes_between_ours_keep_their_place(peer, queue, consume, claimed):
    await queue.add("a")
    await peer.dispatch("mail", "b")
    await queue.add("c")
    await peer.dispatch("mail", "d")
    await peer.dispatch("mail", "first", priority=9)
    await queue.add("zeroth", priority=10)
    assert [job.data for job in await queue.jobs()] == ["zeroth", "first", "a", "b", "c", "d"]
    assert [claim.job.data for claim in await claimed(consume(), 10)] == ["zeroth", "first", "a", "b", "c", "d"]


@pytest.mark.slow
@pytest.mark.parametrize("known", [0, 30])
async def test_a_large_foreign_backlog_is_taken_over_in_order(peer, queue, consume, claimed, known):
    await queue.add_many([NewJob(f"ours {n}") for n in range(known)])
    ids = [await peer.dispatch("mail" if n % 3 else "letter", n) for n in range(900)]
    assert (await queue.counts())[State.WAITING] == known + 600
    claims = await claimed(consume(), 1000)
    expected = [f"ours {n}" for n in range(known)] + [n for n in range(900) if n % 3]
    assert [claim.job.data for claim in claims] == expected
    assert await peer.redis.lrange(peer.key("jobs", "waiting"), 0, -1) == ids[::3]


async def test_a_lost_index_is_built_again(peer, queue, consume, claimed):
    await queue.add_many([NewJob(n, target=Target(stack=("py",)) if n % 2 else None) for n in range(500)])
    ours = [key async for key in peer.redis.scan_iter(match=peer.key("x", "*"), count=100_000)]
    await peer.redis.delete(*ours)
    claims = await claimed(consume(stack="py"), 600)
    assert [claim.job.data for claim in claims] == list(range(500))


async def test_what_a_peer_took_is_counted_as_running_and_not_taken_again(peer, queue, consume, claimed):
    await queue.add_many([NewJob(n) for n in range(10)])
    theirs = [await peer.claim() for _ in range(4)]
    assert [job["payload"] for job in theirs] == [0, 1, 2, 3]
    counts = await queue.counts()
    assert (counts[State.WAITING], counts[State.ACTIVE]) == (6, 4)
    assert [claim.job.data for claim in await claimed(consume(), 10)] == [4, 5, 6, 7, 8, 9]
    for job in theirs:
        assert await peer.finish(job, "done by a peer")
    counts = await queue.counts()
    assert (counts[State.ACTIVE], counts[State.COMPLETED]) == (6, 4)
    assert (await queue.get(theirs[0]["jobId"])).result == "done by a peer"


async def test_a_mixed_fleet_shares_a_backlog_without_duplicates(peer, queue, consume):
    jobs = 600
    await queue.add_many([NewJob(n) for n in range(jobs // 2)])
    for n in range(jobs // 2, jobs):
        await peer.dispatch("mail", n)
    ran: Counter[int] = Counter()

    async def ours(consumer):
        settled = await consumer.settle([], 5)
        while settled.claims or settled.next_in == 0:
            ran.update(claim.job.data for claim in settled.claims)
            settled = await consumer.settle([Completed(claim, b"1") for claim in settled.claims], 5)

    async def theirs(fellow):
        while job := await fellow.claim():
            ran[job["payload"]] += 1
            assert await fellow.finish(job)

    fellows = [peer.fellow(f"peer-{n}") for n in range(3)]
    await asyncio.gather(*(ours(consume()) for _ in range(3)), *map(theirs, fellows))
    assert set(ran.values()) == {1}
    assert len(ran) == jobs
    assert await peer.redis.llen(peer.key("jobs", "waiting")) == 0
    assert await peer.redis.scard(peer.key("jobs", "active")) == 0
    assert await peer.redis.get(peer.key("ratelimit", "concurrent", "mail")) == "0"
    counts = await queue.counts()
    assert (counts[State.WAITING], counts[State.ACTIVE], counts[State.COMPLETED]) == (0, 0, jobs)


async def test_delayed_jobs_of_a_peer_are_counted_and_run_by_the_leader(peer, queue, work):
    job_id = await peer.dispatch("mail", "later", schedule={"delay": 150})
    assert (await queue.counts())[State.DELAYED] == 1

    async def handler(job):
        return job.data

    async with work(handler):
        assert await queue.wait(job_id, timeout=10) == "later"


async def test_a_delayed_job_that_a_peer_moved_on_is_run_once(peer, queue, consume, claimed):
    added = await queue.add("x", delay=0.05)
    due = await peer.redis.zscore(peer.key("jobs", "delayed"), added.id)
    assert await peer.move_delayed(int(due)) == 1
    assert (await queue.get(added.id)).state is State.WAITING
    await asyncio.sleep(0.06)
    assert [claim.job.id for claim in await claimed(consume(), 5)] == [added.id]
    assert (await queue.counts())[State.DELAYED] == 0


async def test_a_release_by_a_peer_under_our_server_id_ends_our_claim(peer, queue, consume, claimed):
    added = await queue.add(1)
    consumer = consume("w1")
    [claim] = await claimed(consumer)
    assert await peer.fellow("w2").release(added.id, "mail") is False
    assert await peer.fellow("w1").release(added.id, "mail") is True
    assert (await consumer.settle([Completed(claim, b"1")], 0)).verdicts[0].value == "lost"


async def test_an_id_without_data_is_dropped(peer, queue, consume, claimed):
    await peer.push("ghost")
    await queue.add(1)
    await peer.push("ghost", front=True)
    assert [claim.job.data for claim in await claimed(consume(), 5)] == [1]
    assert await peer.redis.llen(peer.key("jobs", "waiting")) == 0


async def test_an_id_pushed_into_the_midst_is_found_by_the_leader(peer, queue, consume, claimed):
    added = await queue.add_many([NewJob(n) for n in range(3)])
    await peer.store("between", json.dumps({"type": "mail", "payload": "between"}))
    await peer.redis.linsert(peer.key("jobs", "waiting"), "after", added[0].id, "between")
    leader = consume()
    [schedule] = [duty for duty in leader.duties() if duty.name == "schedule"]
    await schedule.run()
    assert [claim.job.data for claim in await claimed(leader, 5)] == [0, "between", 1, 2]


async def test_jobs_that_a_peer_popped_are_forgotten(peer, queue):
    await queue.add_many([NewJob(n) for n in range(5)])
    popped = await peer.redis.lpop(peer.key("jobs", "waiting"))
    assert (await queue.counts())[State.WAITING] == 4
    assert popped not in [job.id for job in await queue.jobs()]


async def test_a_counter_that_is_no_number_costs_no_job(peer, queue, consume, claimed):
    await peer.redis.set(peer.key("ratelimit", "concurrent", "mail"), "many")
    await peer.redis.rpush(peer.key("ratelimit", "minute", "mail"), "odd")
    await queue.add_many([NewJob(n) for n in range(3)])
    consumer = consume()
    claims = await claimed(consumer, 3)
    assert len(claims) == 3
    assert await peer.redis.get(peer.key("ratelimit", "concurrent", "mail")) == "3"
    await consumer.settle([Completed(claim, b"1") for claim in claims], 0)
    assert await peer.redis.get(peer.key("ratelimit", "concurrent", "mail")) == "0"


async def test_a_namespace_whose_keys_are_of_foreign_types_loses_no_job(peer, queue, consume):
    from jobwire.errors import StoreRefused

    added = await queue.add(1)
    await peer.redis.set(peer.key("jobs", "active"), "not a set")
    with pytest.raises(StoreRefused):
        await consume().settle([], 1)
    assert await peer.redis.lrange(peer.key("jobs", "waiting"), 0, -1) == [added.id]


async def test_what_a_peer_completes_is_seen_with_no_worker_of_ours_running(peer, queue):
    added = await queue.add_many([NewJob(n) for n in range(3)])
    job = await peer.claim()
    assert (await queue.get(added[0].id)).state is State.ACTIVE
    assert await peer.finish(job, "done by a peer")
    assert (await queue.get(added[0].id)).state is State.COMPLETED
    assert await added[0].wait(timeout=5) == "done by a peer"
    assert [(await queue.get(one.id)).state for one in added[1:]] == [State.WAITING] * 2


async def test_a_peer_that_pops_the_list_itself_is_followed_by_status_lock_and_list(peer, queue):
    """The peer's own worker loop: no active set, a failed try goes back to the tail."""
    added = await queue.add(1)
    waiting, status = peer.key("jobs", "waiting"), peer.key("jobs", "status", added.id)
    assert await peer.redis.lpop(waiting) == added.id
    await peer.redis.set(peer.key("jobs", "lock", added.id), "peer", ex=30)
    await peer.redis.set(status, "active")
    assert (await queue.get(added.id)).state is State.ACTIVE
    await peer.redis.set(status, "waiting")
    await peer.redis.delete(peer.key("jobs", "lock", added.id))
    await peer.push(added.id)
    assert (await queue.get(added.id)).state is State.WAITING
    await peer.redis.lpop(waiting)
    await peer.redis.lpush(peer.key("jobs", "deadletter"), added.id)
    await peer.redis.set(status, "dead")
    assert (await queue.get(added.id)).state is State.FAILED
    await queue.admin.retry(added.id)
    assert (await queue.get(added.id)).state is State.WAITING
    assert await peer.redis.lrange(waiting, 0, -1) == [added.id]
