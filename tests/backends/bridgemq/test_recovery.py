"""Jobs of workers that died, ours and others'."""

from __future__ import annotations

import json
import time

import pytest

from awaiting import eventually
from jobwire import NewJob
from jobwire.backends.bridgemq.upkeep import scheduler
from jobwire.boundary import Completed
from jobwire.model import State


@pytest.fixture
def recover(monkeypatch):
    """Do a consumer's duties, the leader's among them, until a job was taken back."""
    monkeypatch.setattr(scheduler, "ORPHANS_EVERY", 0.1)

    async def until_found(consumer):
        async def look():
            reports = [await duty.run() for duty in consumer.duties()]
            return [job_id for report in reports for job_id in report.recovered]

        return await eventually(look)

    return until_found


async def test_a_job_of_a_dead_owner_is_taken_back_before_its_long_lock_ends(queue, peer, consume, claimed, recover):
    added = await queue.add(1)
    await claimed(consume("dead", lease=3600))
    await peer.redis.delete(peer.key("workers", "heartbeat", "dead"))
    assert await recover(consume("alive", recover_every=0.05)) == [added.id]
    assert await peer.redis.lrange(peer.key("jobs", "waiting"), 0, -1) == [added.id]
    assert await peer.redis.get(peer.key("jobs", "status", added.id)) == "waiting"
    assert await peer.redis.get(peer.key("ratelimit", "concurrent", "mail")) == "0"
    assert json.loads(await peer.redis.get(peer.key("jobs", "data", added.id)))["attempts"] == 0


async def test_a_peers_job_without_a_lock_is_taken_back_when_found_so_twice(queue, peer, consume, recover):
    added = await queue.add_many([NewJob("theirs"), NewJob("waits")])
    job = await peer.claim(lock_seconds=30)
    await peer.redis.delete(peer.key("jobs", "lock", job["jobId"]))
    leader = consume("w1")
    began = time.monotonic()
    assert await recover(leader) == [added[0].id]
    assert time.monotonic() - began >= 0.1
    assert await peer.redis.lrange(peer.key("jobs", "waiting"), 0, -1) == [job.id for job in added]


async def test_a_peers_job_is_left_alone_while_its_owner_lives(queue, peer, consume):
    await queue.add(1)
    await peer.claim()
    await peer.redis.set(peer.key("workers", "heartbeat", "peer"), "1", ex=30)
    leader = consume("w1")
    for _ in range(3):
        for duty in leader.duties():
            assert list((await duty.run()).recovered) == []
    assert await peer.redis.scard(peer.key("jobs", "active")) == 1


async def test_a_peer_that_registered_a_moment_ago_is_alive_before_its_first_beat(queue, peer, consume):
    await queue.add(1)
    await peer.claim()
    about = {"serverId": "peer", "lastSeen": int(time.time() * 1000)}
    await peer.redis.set(peer.key("workers", "peer"), json.dumps(about))
    leader = consume("w1")
    for duty in leader.duties():
        assert list((await duty.run()).recovered) == []


async def test_a_job_that_stalled_too_often_is_dead_with_a_reason(queue, peer, consume, claimed, recover):
    added = await queue.add(1)
    for turn in range(2):
        await claimed(consume(f"dead-{turn}", lease=0.05, max_stalled=1))
        await recover(consume(f"alive-{turn}", recover_every=0.05))
    job = await queue.get(added.id)
    assert (job.state, "stalled more than 1" in job.error) == (State.FAILED, True)
    assert await peer.redis.lrange(peer.key("jobs", "deadletter"), 0, -1) == [added.id]


async def test_a_recovered_job_with_a_target_goes_to_a_worker_that_matches(queue, consume, claimed, recover):
    from jobwire import Target

    await queue.add("x", target=Target(stack=("py",)))
    await claimed(consume("dead", lease=0.05, stack="py"))
    await recover(consume("other", recover_every=0.05))
    assert await claimed(consume("plain")) == []
    consumer = consume("third", stack="py")
    [claim] = await claimed(consumer)
    assert (await consumer.settle([Completed(claim, b"1")], 0)).verdicts[0].value == "completed"


async def test_a_worker_that_leaves_takes_no_job_from_another_of_its_server_id(queue, peer, consume, claimed):
    added = await queue.add(1)
    leaves = consume("one", server_id="shared")
    stays = consume("other", server_id="shared")
    for consumer in (leaves, stays):
        await _duty(consumer, "send the heartbeat")()
    [claim] = await claimed(stays)
    await leaves.close()
    assert await peer.redis.exists(peer.key("workers", "heartbeat", "shared"))
    assert [worker.raw["serverId"] for worker in await queue.admin.workers()] == ["shared"]
    assert (await _duty(consume("third", recover_every=0.05), "recover")()).recovered == []
    assert (await stays.settle([Completed(claim, b"1")], 0)).verdicts[0].value == "completed"
    assert (await queue.get(added.id)).state is State.COMPLETED
    await stays.close()
    assert await queue.admin.workers() == []
    assert not await peer.redis.exists(peer.key("workers", "shared"), peer.key("workers", "heartbeat", "shared"))
    assert await peer.redis.smembers(peer.key("workers", "active")) == set()


async def test_a_worker_that_leaves_another_type_leaves_the_server_id_to_it(queue, peer, consume, connection):
    mail, letters = consume("one", server_id="shared"), consume("other", server_id="shared", queue="letters")
    for consumer in (mail, letters):
        await _duty(consumer, "send the heartbeat")()
    await mail.close()
    assert await queue.admin.workers() == []
    assert len(await connection.backend.workers.workers("letters")) == 1


async def test_a_short_recovery_period_is_kept_beside_a_worker_with_a_long_one(queue, consume, claimed, recover):
    rare, often = consume("rare", recover_every=3600), consume("often", recover_every=0.05)
    await _duty(rare, "recover")()
    added = await queue.add(1)
    await claimed(consume("dead", lease=0.05))
    assert await recover(often) == [added.id]


async def test_workers_of_one_period_share_its_looks(queue, peer, consume, claimed):
    one, other = consume("one", recover_every=3600), consume("other", recover_every=3600)
    await _duty(one, "recover")()
    await queue.add(1)
    await claimed(consume("dead", lease=3600))
    await peer.redis.delete(peer.key("workers", "heartbeat", "dead"))
    assert (await _duty(other, "recover")()).recovered == []


async def test_an_id_in_the_running_set_that_has_no_job_leaves_it(peer, consume, monkeypatch):
    monkeypatch.setattr(scheduler, "ORPHANS_EVERY", 0.05)
    await peer.redis.sadd(peer.key("jobs", "active"), "gone")
    leader = consume("w1")

    async def is_empty():
        await _duty(leader, "schedule")()
        return not await peer.redis.exists(peer.key("jobs", "active"))

    await eventually(is_empty)
    assert await peer.redis.hlen(peer.key("x", "claims", "")) == 0


def _duty(consumer, name):
    return next(duty.run for duty in consumer.duties() if duty.name == name)
