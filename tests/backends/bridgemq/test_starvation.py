"""Jobs for others never stand in the way: neither hidden nor slowed, wherever the matching job is."""

from __future__ import annotations

import pytest

from jobwire import NewJob, Target
from jobwire.boundary import Completed
from jobwire.model import State

NOBODY = Target(server="nobody")


async def test_five_hundred_jobs_for_others_at_the_head_hide_nothing_from_us(peer, queue, consume, claimed):
    await queue.add_many([NewJob(n, target=NOBODY) for n in range(500)])
    await queue.add("mine")
    assert await peer.claim() is None
    assert [claim.job.data for claim in await claimed(consume(), 5)] == ["mine"]


async def test_nor_do_jobs_that_a_foreign_producer_pushed(peer, queue, consume, claimed):
    for n in range(700):
        await peer.dispatch("mail", n, target={"stack": ["cobol"]})
    await peer.dispatch("mail", "mine")
    assert [claim.job.data for claim in await claimed(consume(), 5)] == ["mine"]


async def test_jobs_in_the_midst_of_a_long_list_are_taken_and_the_rest_stays_in_order(peer, queue, consume, claimed):
    await queue.add_many([NewJob(n, target=NOBODY if n % 4 else None, id=f"job-{n}") for n in range(2000)])
    consumer = consume()
    taken = []
    while claims := await claimed(consumer, 20):
        taken += [claim.job.data for claim in claims]
        await consumer.settle([Completed(claim, b"1") for claim in claims], 0)
    assert taken == list(range(0, 2000, 4))
    left = [item for item in await peer.redis.lrange(peer.key("jobs", "waiting"), 0, -1) if item != "x:gone"]
    assert left == [f"job-{n}" for n in range(2000) if n % 4]
    assert (await queue.counts())[State.WAITING] == 1500


async def test_gaps_in_the_list_are_swept_and_harm_no_peer(peer, queue, consume, claimed):
    await queue.add_many([NewJob(n, target=NOBODY) for n in range(400)])
    await queue.add_many([NewJob(n) for n in range(300)])
    await queue.add_many([NewJob(n, target=Target(server="peer")) for n in range(400)])
    consumer = consume()
    for _ in range(10):
        assert len(await claimed(consumer, 30)) == 30
    listed = await peer.redis.lrange(peer.key("jobs", "waiting"), 0, -1)
    assert listed.count("x:gone") <= 64 + 30
    await peer.redis.ltrim(peer.key("jobs", "waiting"), 400, -1)
    assert [(await peer.claim())["payload"] for _ in range(5)] == [0, 1, 2, 3, 4]


async def test_a_job_that_someone_holds_a_lock_on_is_passed_over_until_it_is_free(peer, queue, consume, claimed):
    added = await queue.add_many([NewJob(n) for n in range(5)])
    lock = peer.key("jobs", "lock", added[1].id)
    await peer.redis.set(lock, "someone", ex=30)
    consumer = consume()
    assert [claim.job.data for claim in await claimed(consumer, 5)] == [0, 2, 3, 4]
    await peer.redis.delete(lock)
    assert [claim.job.data for claim in await claimed(consumer, 5)] == [1]


@pytest.mark.slow
async def test_one_claim_finds_its_jobs_behind_twenty_thousand_for_others(queue, consume):
    """In one call, whatever the backlog; what it costs is drawn by the bench."""
    consumer = consume()
    await queue.add_many([NewJob(n, target=NOBODY) for n in range(20_000)])
    for turn in range(3):
        await queue.add_many([NewJob([turn, n]) for n in range(10)])
        claims = (await consumer.settle([], 10)).claims
        assert [claim.job.data for claim in claims] == [[turn, n] for n in range(10)]
        await consumer.settle([Completed(claim, b"1") for claim in claims], 0)
