"""The leader of a namespace: elected, renewed, fenced; what it does for all, and what a leader of the past can't do."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime

import pytest

from awaiting import assert_left, eventually
from jobwire import Backoff, NewJob, Queue
from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.bridgemq.upkeep.cron import tick_of
from jobwire.backends.bridgemq.upkeep.scheduler import Deposed, Scheduler
from jobwire.boundary import Completed, Failed
from jobwire.model import State


@pytest.fixture
def scheduler(connection, namespace):
    """Make a scheduler as a worker would have it."""
    backend = connection.backend

    def make(scheduler_id: str) -> Scheduler:
        return Scheduler(backend._namespace.scripts, Keys(namespace), scheduler_id)

    return make


async def waiting_ids(peer):
    return await peer.redis.lrange(peer.key("jobs", "waiting"), 0, -1)


async def due_cron(queue, peer, **options):
    """A cron job of a minute ago."""
    await queue.schedule("report", cron="0 9 * * *", data="report", **options)
    job_id = "cron:mail:report"
    await peer.redis.zadd(peer.key("jobs", "cron"), {job_id: int(time.time() * 1000) - 60_000})
    return job_id


async def test_one_of_many_leads_until_it_steps_down(scheduler, peer):
    candidates = [scheduler(f"s{n}") for n in range(5)]
    began = time.monotonic()
    assert [await one.elect() for one in candidates] == [True, False, False, False, False]
    lock = peer.key("scheduler", "lock")
    assert await peer.redis.get(lock) == "s0"
    assert_left(await peer.redis.pttl(lock) / 1000, of=30, since=began)
    await candidates[0].step_down()
    assert await peer.redis.get(lock) is None
    assert await scheduler("s9").elect()


async def test_the_leader_renews_its_lock_and_only_its_own(scheduler, peer):
    leader, lock = scheduler("s1"), peer.key("scheduler", "lock")
    assert await leader.elect()
    await peer.redis.expire(lock, 5)
    leader._renewed_at -= 10
    began = time.monotonic()
    assert await leader.elect()
    assert_left(await peer.redis.pttl(lock) / 1000, of=30, since=began)
    await peer.redis.set(lock, "someone else", ex=30)
    leader._renewed_at -= 10
    assert not await leader.elect()
    await leader.step_down()
    assert await peer.redis.get(lock) == "someone else"


async def test_a_leader_that_could_not_renew_for_25_seconds_no_longer_believes_in_itself(scheduler, peer):
    leader = scheduler("s1")
    assert await leader.elect()
    await peer.redis.set(peer.key("scheduler", "lock"), "another")
    leader._renewed_at -= 26
    leader._asked_at = time.monotonic()
    assert not await leader.elect()


async def test_two_leaders_make_one_tick_each_and_the_one_that_slept_beyond_its_lease_makes_none(
    scheduler, queue, peer, claimed, consume
):
    first, second = scheduler("first"), scheduler("second")
    job_id = await due_cron(queue, peer)
    await queue.add("later", delay=0.001)
    assert await first.elect()
    ticks = await first._crontab.due()  # the first has read what is due, and falls asleep
    await peer.redis.delete(peer.key("scheduler", "lock"))  # its lease ends meanwhile
    assert await second.elect()
    assert await second.fire() == [1]
    assert await waiting_ids(peer) == [job_id]

    assert first.leads  # it knows nothing of that
    first._crontab.due = lambda: asyncio.sleep(0, ticks)
    for act in (first.fire, first.move_due, first.orphans, first.tidy):
        with pytest.raises(Deposed):
            await act()
    assert await waiting_ids(peer) == [job_id]
    assert (await queue.counts())[State.DELAYED] == 1
    assert await second.move_due() == 1


async def test_a_tick_of_a_leader_that_was_replaced_says_so_and_does_nothing(scheduler, queue, peer):
    leader = scheduler("first")
    await leader.elect()
    await peer.redis.set(peer.key("scheduler", "lock"), "second", ex=30)
    await due_cron(queue, peer)
    assert "another" in (await leader.tick()).note
    assert not leader.leads
    assert await waiting_ids(peer) == []


async def test_the_same_tick_by_two_who_both_think_they_lead_happens_once(scheduler, queue, peer):
    """After a failover that lost the lock: the score is compared before the push."""
    one, other = scheduler("s"), scheduler("s")
    await one.elect()
    await due_cron(queue, peer)
    ticks = await one._crontab.due()
    other._crontab.due = lambda: asyncio.sleep(0, ticks)
    assert await one.fire() == [1]
    assert await other.fire() == [2]
    assert len(await waiting_ids(peer)) == 1


async def test_missed_ticks_run_once_and_then_go_on_from_now(scheduler, queue, peer):
    leader = scheduler("s")
    await leader.elect()
    await queue.schedule("often", cron="* * * * *")
    cron = peer.key("jobs", "cron")
    await peer.redis.zadd(cron, {"cron:mail:often": int(time.time() * 1000) - 86_400_000})
    before = time.time() * 1000
    assert await leader.fire() == [1]
    after = time.time() * 1000
    assert before < await peer.redis.zscore(cron, "cron:mail:often") <= after + 60_000
    await leader.fire()  # nothing, or the tick of a minute that has just begun
    assert await waiting_ids(peer) == ["cron:mail:often"]


async def test_a_template_cycles_through_its_states_and_is_never_deleted(scheduler, queue, peer, consume, claimed):
    leader, consumer = scheduler("s"), consume()
    await leader.elect()
    job_id = await due_cron(queue, peer)
    status = peer.key("jobs", "status", job_id)
    assert await peer.redis.get(status) == "cron"
    await leader.fire()
    assert await peer.redis.get(status) == "waiting"
    [claim] = await claimed(consumer)
    assert (claim.job.id, claim.job.data) == (job_id, "report")
    assert await peer.redis.get(status) == "active"
    await consumer.settle([Completed(claim, b'"sent"')], 0)
    assert await peer.redis.get(status) == "cron"
    assert await peer.redis.ttl(peer.key("jobs", "data", job_id)) == -1
    assert json.loads(await peer.redis.get(peer.key("jobs", "result", job_id)))["data"] == "sent"
    assert [schedule.key for schedule in await queue.schedules()] == ["report"]


async def test_a_template_that_fails_waits_for_its_next_tick(scheduler, queue, peer, consume, claimed):
    leader, consumer = scheduler("s"), consume()
    await leader.elect()
    job_id = await due_cron(queue, peer)
    await leader.fire()
    [claim] = await claimed(consumer)
    await consumer.settle([Failed(claim, "broken")], 0)
    assert await peer.redis.get(peer.key("jobs", "status", job_id)) == "cron"
    assert await peer.redis.llen(peer.key("jobs", "deadletter")) == 0
    assert json.loads(await peer.redis.get(peer.key("jobs", "data", job_id)))["attempts"] == 0


async def test_a_tick_is_skipped_while_the_template_waits_or_runs(scheduler, queue, peer, consume, claimed):
    leader, consumer = scheduler("s"), consume()
    await leader.elect()
    await due_cron(queue, peer)
    assert await leader.fire() == [1]
    await due_cron(queue, peer)
    assert await leader.fire() == [0]
    [claim] = await claimed(consumer, 5)
    await due_cron(queue, peer)
    assert await leader.fire() == [0]
    await consumer.settle([Completed(claim, b"1")], 0)
    await due_cron(queue, peer)
    assert await leader.fire() == [1]


@pytest.mark.parametrize("overlap", ["allow", "skip"])
async def test_in_instance_mode_every_tick_is_a_job_of_its_own(scheduler, queue, peer, consume, overlap):
    second = 1 if overlap == "allow" else 0
    leader, consumer = scheduler("s"), consume()
    await leader.elect()
    extra = {"cronMode": "instance", "overlap": overlap}
    job_id = await due_cron(queue, peer, extra=extra)
    assert await leader.fire() == [1]
    await peer.redis.zadd(peer.key("jobs", "cron"), {job_id: int(time.time() * 1000) - 30_000})
    assert await leader.fire() == [second]
    claims = (await consumer.settle([], 5)).claims
    assert len(claims) == 1 + second
    assert all(claim.job.id.startswith(f"{job_id}:") for claim in claims)
    await consumer.settle([Completed(claim, b"1") for claim in claims], 0)
    assert {(await queue.get(claim.job.id)).state for claim in claims} == {State.COMPLETED}
    assert await peer.redis.zscore(peer.key("jobs", "cron"), job_id) is not None


async def test_a_cron_job_of_a_peer_is_listed_run_and_stopped(scheduler, queue, peer, consume, claimed):
    leader = scheduler("s")
    await leader.elect()
    job_id = await peer.dispatch("mail", "theirs", schedule={"cron": "*/5 * * * *", "timezone": "Europe/Paris"})
    [schedule] = await queue.schedules()
    assert (schedule.key, schedule.cron, schedule.tz) == (job_id, "*/5 * * * *", "Europe/Paris")
    await peer.redis.zadd(peer.key("jobs", "cron"), {job_id: 1})
    await peer.push_cron(int(time.time() * 1000))  # a peer's script pushes it, and leaves the score to its client
    await leader.reindex()
    assert await leader.fire() == [0]
    assert [claim.job.data for claim in await claimed(consume(), 5)] == ["theirs"]
    assert await queue.unschedule(job_id)


async def test_a_cron_job_that_can_not_be_scheduled_goes_to_the_dead_letter(scheduler, queue, peer):
    leader = scheduler("s")
    await leader.elect()
    job_id = await peer.dispatch("mail", schedule={"cron": "every now and then"})
    await peer.redis.zadd(peer.key("jobs", "cron"), {job_id: 1})
    await leader.fire()
    assert await waiting_ids(peer) == []
    job = await queue.get(job_id)
    assert (job.state, "cron" in job.error) == (State.FAILED, True)


def ms(*moment):
    return int(datetime(*moment, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("30 2 * * *", ms(2027, 3, 14), ms(2027, 3, 14, 7, 30)),  # 02:30 does not exist in New York that day: 03:30
        ("30 1 * * *", ms(2027, 11, 7), ms(2027, 11, 7, 5, 30)),  # 01:30 comes twice: the first one
        ("30 1 * * *", ms(2027, 11, 7, 5, 30), ms(2027, 11, 8, 6, 30)),  # and not the second
    ],
)
def test_clock_changes_neither_lose_nor_double_a_tick(cron, after, expected):
    data = json.dumps({"type": "mail", "schedule": {"cron": cron, "timezone": "America/New_York"}})
    assert tick_of(b"j", after - 1, data.encode(), after).next_due == expected


async def test_due_jobs_of_all_types_are_moved_by_the_leader(scheduler, queue, peer, connection):
    leader = scheduler("s")
    await leader.elect()
    async with Queue("letter", connection) as letters:
        await letters.add_many([NewJob(n, delay=0.001) for n in range(150)])
        await queue.add("urgent", delay=0.002, priority=8)
        moved = 0
        async with asyncio.timeout(20):
            while moved < 151:
                moved += await leader.move_due()
        assert (await letters.counts())[State.WAITING] == 150
    first = (await waiting_ids(peer))[0]
    assert (await queue.get(first)).data == "urgent"
    assert await peer.redis.get(peer.key("jobs", "status", first)) == "waiting"


async def test_a_counter_that_leaked_is_set_right_at_the_second_look(scheduler, queue, peer, consume, claimed):
    leader, counter = scheduler("s"), peer.key("ratelimit", "concurrent", "mail")
    await leader.elect()
    await queue.add_many([NewJob(n) for n in range(3)])
    await claimed(consume(), 2)
    await peer.redis.set(counter, 9)
    await leader.tidy()
    assert await peer.redis.get(counter) == "9"
    await leader.tidy()
    assert await peer.redis.get(counter) == "2"


async def test_workers_that_were_silent_for_long_are_struck_off(scheduler, peer):
    leader = scheduler("s")
    await leader.elect()
    now = int(time.time() * 1000)
    for server, seen in (("old", now - 400_000), ("new", now - 100_000)):
        await peer.redis.set(peer.key("workers", server), json.dumps({"serverId": server, "lastSeen": seen}))
        await peer.redis.sadd(peer.key("workers", "active"), server)
    await leader.tidy()
    assert await peer.redis.smembers(peer.key("workers", "active")) == {"new"}
    assert not await peer.redis.exists(peer.key("workers", "old"))


async def test_routes_without_jobs_are_forgotten_and_come_back_when_needed(scheduler, queue, consume, claimed):
    from jobwire import Target

    leader, consumer = scheduler("s"), consume("w1", stack="py")
    await leader.elect()
    for target in (Target(stack=("py",)), Target(server="w1")):
        await queue.add(1, target=target)
    assert len(await claimed(consumer, 5)) == 2
    await leader.tidy()
    assert await claimed(consumer, 5) == []
    for target in (Target(stack=("py",)), Target(server="w1")):
        await queue.add(2, target=target)
    assert len(await claimed(consumer, 5)) == 2


@pytest.mark.parametrize(
    "retry",
    [{}, {"attempts": 3}, {"attempts": 3, "backoff": Backoff.fixed(0.001)}],
    ids=["no retry", "retry at once", "retry later"],
)
async def test_a_schedule_that_is_replaced_during_a_failing_run_stays_replaced(scheduler, queue, peer, consume, retry):
    leader, consumer = scheduler("s"), consume()
    await leader.elect()
    job_id = await due_cron(queue, peer, **retry)
    await leader.fire()
    [claim] = (await consumer.settle([], 1)).claims
    await queue.schedule("report", cron="30 10 * * *", data="new", **retry)
    await consumer.settle([Failed(claim, "broken")], 0)
    [schedule] = await queue.schedules()
    assert (schedule.cron, schedule.data) == ("30 10 * * *", "new")
    if not retry:
        assert await peer.redis.get(peer.key("jobs", "status", job_id)) == "cron"
        return

    async def run_again():
        return (await consumer.settle([], 1)).claims

    [retried] = await eventually(run_again)
    assert (retried.job.id, retried.job.data) == (job_id, "new")


async def test_a_failing_run_of_a_schedule_that_is_not_replaced_counts_its_attempts(
    scheduler, queue, peer, consume, claimed
):
    leader, consumer = scheduler("s"), consume()
    await leader.elect()
    await due_cron(queue, peer, attempts=2)
    await leader.fire()
    [claim] = await claimed(consumer)
    await consumer.settle([Failed(claim, "broken")], 0)
    [again] = await claimed(consumer)
    assert (again.job.data, again.job.attempts_made) == ("report", 1)


@pytest.mark.parametrize("score", [float("-inf"), -1e300])
@pytest.mark.parametrize("extra", [{}, {"cronMode": "instance"}], ids=["template", "instance"])
async def test_an_absurd_moment_of_a_cron_job_is_a_tick_like_any_other(scheduler, queue, peer, score, extra):
    leader = scheduler("s")
    await leader.elect()
    job_id = await due_cron(queue, peer, extra=extra)
    await peer.redis.zadd(peer.key("jobs", "cron"), {job_id: score})
    assert await leader.fire() == [1]
    assert await peer.redis.zscore(peer.key("jobs", "cron"), job_id) > time.time() * 1000
