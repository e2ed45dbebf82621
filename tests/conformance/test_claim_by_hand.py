"""`queue.claim()`: a job for a program that has a loop of its own, settled by that program, once."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from faults.proxy import Proxy
from jobwire import claimer
from jobwire.boundary import Feature
from jobwire.errors import (
    Closed,
    InvalidOption,
    LostLock,
    NotSupported,
    Snooze,
    StoreUnavailable,
    Unrecoverable,
    WrongState,
)
from jobwire.model import State
from jobwire.options import NewJob
from jobwire.queue import Queue

from .conftest import QUEUE, with_attempts

SHORT = {"lease": 0.3, "recover_every": 0.1}


async def state_of(queue, job):
    return (await queue.get(job.id)).state


async def test_a_claimed_job_shows_its_fields_and_is_active(queue):
    added = await queue.add({"to": "a"})
    job = await queue.claim()
    assert (job.id, job.queue, job.data, job.attempts_made) == (added.id, queue.name, {"to": "a"}, 0)
    assert job.token
    assert job.settled is False
    assert await state_of(queue, added) is State.ACTIVE


async def test_an_empty_queue_gives_none(queue):
    assert await queue.claim() is None


async def test_jobs_are_claimed_in_order_until_there_are_none(queue):
    await queue.add_many([NewJob(n) for n in range(3)])
    taken = []
    while job := await queue.claim():
        taken.append(job.data)
        await job.complete()
    assert taken == [0, 1, 2]
    assert (await queue.counts())[State.COMPLETED] == 3


async def test_a_completed_job_has_its_result(queue):
    added = await queue.add(1)
    job = await queue.claim()
    await job.complete({"ok": True})
    assert job.settled
    stored = await queue.get(added.id)
    assert (stored.state, stored.result) == (State.COMPLETED, {"ok": True})


@with_attempts(2)
async def test_a_failed_job_runs_again_while_attempts_are_left(queue, tries):
    added = await queue.add(1, **tries.job)
    job = await queue.claim()
    assert await job.fail("busy") is True
    again = await queue.claim(timeout=60)
    assert (again.id, again.attempts_made) == (added.id, 1)
    assert await again.fail(ValueError("no such address")) is False
    stored = await queue.get(added.id)
    assert (stored.state, stored.error, stored.attempts_made) == (State.FAILED, "no such address", 2)


@with_attempts(5)
@pytest.mark.parametrize("ending", ["retry=False", "Unrecoverable"])
async def test_a_job_can_be_failed_for_good(queue, tries, ending):
    added = await queue.add(1, **tries.job)
    job = await queue.claim()
    if ending == "retry=False":
        assert await job.fail("no such address", retry=False) is False
    else:
        assert await job.fail(Unrecoverable("no such address")) is False
    stored = await queue.get(added.id)
    assert (stored.state, stored.error) == (State.FAILED, "no such address")
    assert await queue.claim() is None


async def test_a_released_job_is_next_and_is_charged_no_attempt(queue):
    added = await queue.add_many([NewJob("first"), NewJob("second")])
    job = await queue.claim()
    await job.release()
    again = await queue.claim()
    assert (again.id, again.attempts_made) == (added[0].id, 0)


async def test_a_snoozed_job_comes_back_after_its_delay(queue):
    added = await queue.add(1)
    job = await queue.claim()
    began = time.monotonic()
    await job.snooze(timedelta(seconds=0.3))
    assert await state_of(queue, added) is State.DELAYED
    again = await queue.claim(timeout=60)
    assert (again.id, again.attempts_made) == (added.id, 0)
    assert time.monotonic() - began >= 0.299


SETTLINGS = {
    "complete": lambda job: job.complete(),
    "fail": lambda job: job.fail("no", retry=False),
    "release": lambda job: job.release(),
    "snooze": lambda job: job.snooze(3600),
}


@pytest.mark.parametrize("first", SETTLINGS)
async def test_a_job_is_settled_once(queue, first):
    added = await queue.add(1)
    job = await queue.claim()
    await SETTLINGS[first](job)
    before = await queue.get(added.id)
    for second in (*SETTLINGS.values(), lambda job: job.extend()):
        with pytest.raises(WrongState, match="settled once"):
            await second(job)
    after = await queue.get(added.id)
    assert (after.state, after.error, after.attempts_made) == (before.state, before.error, before.attempts_made)


async def test_two_settlings_at_a_time_are_one_and_an_error(queue):
    added = await queue.add(1)
    job = await queue.claim()
    first, second = await asyncio.gather(job.complete(), job.fail("no", retry=False), return_exceptions=True)
    assert first is None
    assert isinstance(second, WrongState)
    assert await state_of(queue, added) is State.COMPLETED


async def test_what_was_refused_for_its_arguments_can_still_be_settled(queue):
    added = await queue.add(1)
    job = await queue.claim()
    with pytest.raises(InvalidOption):
        await job.complete({1, 2})
    with pytest.raises(InvalidOption):
        await job.fail("")
    with pytest.raises(InvalidOption):
        await job.fail(42)
    with pytest.raises(InvalidOption):
        await job.snooze(-1)
    assert not job.settled
    await job.complete()
    assert await state_of(queue, added) is State.COMPLETED


async def test_progress_logs_and_data_can_be_written(queue, needs):
    added = await queue.add(1)
    job = await queue.claim()
    with needs(queue, Feature.PROGRESS):
        await job.update_progress(50)
        assert (await queue.get(added.id)).progress == 50
    with needs(queue, Feature.LOGS):
        await job.log("half way")
        assert await queue.logs(added.id) == ["half way"]
    with needs(queue, Feature.EDITS):
        await job.update_data(2)
        assert (await queue.get(added.id)).data == 2


# --- several, and waiting -------------------------------------------------------------------------------------------


async def test_claims_at_a_time_get_different_jobs(queue):
    added = await queue.add_many([NewJob(n) for n in range(10)])
    jobs = await asyncio.gather(*(queue.claim() for _ in range(12)))
    taken = [job for job in jobs if job is not None]
    assert sorted(job.id for job in taken) == sorted(job.id for job in added)
    assert jobs.count(None) == 2
    await asyncio.gather(*(job.complete(job.data) for job in taken))
    assert (await queue.counts())[State.COMPLETED] == 10


async def test_a_claim_waits_for_a_job(queue, until_waiting):
    claiming = asyncio.create_task(queue.claim(timeout=None))
    await until_waiting(queue)
    added = await queue.add(1)
    job = await asyncio.wait_for(claiming, 60)
    assert job.id == added.id
    await job.complete()


async def test_a_claim_waits_for_a_job_that_comes_due(queue):
    added = await queue.add(1, delay=0.3)
    job = await queue.claim(timeout=timedelta(seconds=60))
    assert job.id == added.id


async def test_a_claim_ends_when_its_time_is_over(queue):
    began = time.monotonic()
    assert await queue.claim(timeout=0.3) is None
    assert time.monotonic() - began >= 0.299


async def test_claims_that_wait_together_are_all_served(queue, until_waiting):
    claiming = [asyncio.create_task(queue.claim(timeout=60)) for _ in range(5)]
    await until_waiting(queue)
    added = [await queue.add(n) for n in range(5)]
    jobs = await asyncio.gather(*claiming)
    assert sorted(job.id for job in jobs) == sorted(job.id for job in added)


async def test_a_claim_without_time_is_answered_while_another_waits(queue, until_waiting):
    claiming = asyncio.create_task(queue.claim(timeout=60))
    await until_waiting(queue)
    assert await asyncio.wait_for(queue.claim(), 30) is None
    await queue.add(1)
    assert await claiming is not None


async def test_a_worker_takes_the_jobs_that_a_claim_stopped_waiting_for(queue, until_waiting, work, finished):
    claiming = asyncio.create_task(queue.claim(timeout=60))
    await until_waiting(queue)
    claiming.cancel()
    await asyncio.wait([claiming])

    async def handler(job):
        return job.data

    async with work(handler):
        added = [await queue.add(n) for n in range(3)]
        assert [(await finished(queue, job.id)).state for job in added] == [State.COMPLETED] * 3


async def test_a_cancelled_claim_leaves_no_job_behind(queue, eventually):
    """Whenever the cancellation comes: before the call, while it is under way, or when its answer is there."""
    for turns in range(40):
        added = await queue.add(turns)
        claiming = asyncio.create_task(queue.claim())
        for _ in range(turns // 2):
            await asyncio.sleep(0)
        claiming.cancel()
        await asyncio.wait([claiming])
        if not claiming.cancelled():
            await claiming.result().release()

        async def take(added=added):
            job = await queue.claim()
            return job if job is not None and job.id == added.id else None

        job = await eventually(take)
        assert job.attempts_made == 0
        await job.complete()


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(queue, needs, until_waiting):
    with needs(queue, Feature.PAUSE):
        await queue.pause()
        added = await queue.add(1)
        assert await queue.claim() is None
        claiming = asyncio.create_task(queue.claim(timeout=60))
        await until_waiting(queue)
        await queue.resume()
        assert (await claiming).id == added.id


async def test_a_rate_limited_queue_gives_its_next_job_when_the_window_ends(queue, needs):
    with needs(queue, Feature.LIMITS):
        await queue.limit_rate(1, 0.5)
        await queue.add_many([NewJob(1), NewJob(2)])
        first = await queue.claim()
        assert await queue.claim() is None
        second = await queue.claim(timeout=60)
        assert (first.data, second.data) == (1, 2)


# --- leases ---------------------------------------------------------------------------------------------------------


async def test_a_lost_job_says_so(queue):
    await queue.add(1)
    job = await queue.claim()
    await queue.obliterate(force=True)
    with pytest.raises(LostLock):
        await job.complete()
    with pytest.raises(LostLock):
        await job.extend()
    with pytest.raises(LostLock):
        await job.release()
    assert sum((await queue.counts()).values()) == 0


async def test_the_lease_is_not_renewed_by_itself(queue, consume, recover):
    added = await queue.add(1)
    job = await queue.claim(lease=0.3)
    assert await recover(consume(**SHORT)) == [added.id]
    with pytest.raises(LostLock):
        await job.complete()
    assert await state_of(queue, added) is State.WAITING


async def test_extend_renews_the_lease(queue, consume, eventually):
    added = await queue.add(1)
    job = await queue.claim(lease=1)
    other = consume(lease=1, recover_every=0.1)
    until = time.monotonic() + 2.5

    async def kept_for_several_leases():
        await job.extend()
        for duty in other.duties():
            assert list((await duty.run()).recovered) == []
        return time.monotonic() > until

    await eventually(kept_for_several_leases)
    await job.complete()
    assert await state_of(queue, added) is State.COMPLETED


async def test_a_claim_recovers_the_job_of_a_dead_program(queue, consume, eventually):
    """The queue has no worker. What another program left behind must not wait for one."""
    added = await queue.add(1)
    dead = consume(**SHORT)
    await dead.settle([], claim=1)
    for duty in dead.duties():
        await duty.run()  # some protocols take a job back at the second look only
    until = time.monotonic() + 1.5
    await eventually(lambda: time.monotonic() > until)  # the lease of every protocol has ended
    job = await queue.claim()
    assert job is not None
    assert job.id == added.id
    await job.complete()
    assert await state_of(queue, added) is State.COMPLETED


async def test_a_job_that_stalled_too_often_fails_and_the_next_one_is_claimed(queue, consume, recover):
    added = await queue.add_many([NewJob("stalls"), NewJob("fine")])
    for _ in range(2):
        [claim] = (await consume(**SHORT).settle([], claim=1)).claims
        assert claim.job.id == added[0].id
        await recover(consume(**SHORT))
    job = await queue.claim()
    assert job.data == "fine"
    stalled = await queue.get(added[0].id)
    assert stalled.state is State.FAILED
    assert "stalled" in stalled.error


# --- as a block -----------------------------------------------------------------------------------------------------


async def test_a_block_completes_its_job(queue):
    added = await queue.add(1)
    async with await queue.claim() as job:
        assert job.id == added.id
    assert await state_of(queue, added) is State.COMPLETED


async def test_a_block_leaves_a_settled_job_alone(queue):
    added = await queue.add(1)

    async def program():
        async with await queue.claim() as job:
            await job.complete()
            raise ValueError("afterwards")

    with pytest.raises(ValueError, match="afterwards"):
        await program()
    assert await state_of(queue, added) is State.COMPLETED


async def test_a_block_that_raises_fails_its_job(queue):
    added = await queue.add(1)
    with pytest.raises(ValueError, match="no such address"):
        async with await queue.claim():
            raise ValueError("no such address")
    stored = await queue.get(added.id)
    assert (stored.state, stored.error) == (State.FAILED, "no such address")


async def test_a_block_that_raises_snooze_puts_its_job_off(queue):
    added = await queue.add(1)
    with pytest.raises(Snooze):
        async with await queue.claim():
            raise Snooze(3600)
    assert await state_of(queue, added) is State.DELAYED


async def test_a_block_that_is_cancelled_releases_its_job(queue):
    added = await queue.add(1)
    inside = asyncio.Event()

    async def program():
        async with await queue.claim():
            inside.set()
            await asyncio.Event().wait()

    running = asyncio.create_task(program())
    await inside.wait()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    stored = await queue.get(added.id)
    assert (stored.state, stored.attempts_made) == (State.WAITING, 0)


async def test_a_block_whose_job_was_lost_raises_its_own_error(queue, caplog):
    await queue.add(1)

    async def program():
        async with await queue.claim():
            await queue.obliterate(force=True)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await program()
    assert "could not settle job" in caplog.text


# --- opening and closing --------------------------------------------------------------------------------------------


async def test_a_queue_that_is_closed_releases_what_it_holds(queue, connection, caplog):
    added = await queue.add_many([NewJob(1), NewJob(2)])
    async with Queue(QUEUE, connection) as other:
        kept, done = await other.claim(), await other.claim(lease=60)
        await done.complete()
    assert [await state_of(queue, job) for job in added] == [State.WAITING, State.COMPLETED]
    assert (await queue.get(kept.id)).attempts_made == 0
    assert f"1 job unsettled ({kept.id})" in caplog.text
    with pytest.raises(WrongState, match="its queue was closed"):
        await kept.complete()


async def test_closing_ends_claims_that_wait(queue, connection, until_waiting):
    other = await Queue(QUEUE, connection).open()
    claiming = asyncio.create_task(other.claim(timeout=None))
    await until_waiting(other)
    await other.close()
    with pytest.raises(Closed):
        await claiming
    with pytest.raises(Closed):
        await other.claim()


async def test_a_queue_that_is_opened_again_claims_again(queue, connection):
    other = await Queue(QUEUE, connection).open()
    assert await other.claim() is None
    await other.close()
    async with other:
        await queue.add(1)
        job = await other.claim()
        await job.complete()


async def test_a_queue_opens_at_its_first_claim(url):
    queue = Queue(QUEUE, url)
    try:
        assert await queue.claim() is None
    finally:
        await queue.close()


async def test_bad_arguments_are_refused_before_anything_is_opened(url):
    queue = Queue(QUEUE, url)
    try:
        for options in ({"timeout": -1}, {"timeout": "5"}, {"lease": 0}, {"lease": True}, {"worker_id": ""}):
            with pytest.raises(InvalidOption) as refusal:
                await queue.claim(**options)
            assert refusal.value.field in options
        with pytest.raises((InvalidOption, NotSupported)):
            await queue.claim(native=object())
        assert not queue.connection.is_open
    finally:
        await queue.close()


async def test_a_claim_goes_on_waiting_when_its_connections_are_cut(remote, until_waiting):
    async with Proxy(port_of(remote)) as proxy, Queue(QUEUE, proxy.through(remote)) as queue:
        claiming = asyncio.create_task(queue.claim(timeout=None))
        await until_waiting(queue)
        proxy.cut()
        async with Queue(QUEUE, remote) as direct:
            added = await direct.add(1)
        job = await asyncio.wait_for(claiming, 60)
        assert job.id == added.id
        await job.complete()


async def test_a_store_that_is_away_is_an_error_and_the_job_can_be_settled_later(remote):
    async with Queue(QUEUE, remote) as direct:
        added = await direct.add_many([NewJob(1), NewJob(2)])
        async with Proxy(port_of(remote)) as proxy:
            queue = await Queue(QUEUE, proxy.through(remote)).open()
            first, second = await queue.claim(lease=120), await queue.claim(lease=120)
        calls = first.complete(), second.extend(), queue.claim(lease=120)
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(error, StoreUnavailable) for error in errors] == [True] * 3, errors
        async with Proxy(port_of(remote), proxy.port):
            await first.complete()
            await second.complete()
            await queue.close()
        assert [await state_of(direct, job) for job in added] == [State.COMPLETED] * 2


def port_of(url):
    return urlsplit(url.partition("+")[2]).port


@pytest.fixture
def until_waiting(eventually, monkeypatch):
    """Await that a claim of the queue has looked, and waits for the store. It will not look again unasked."""
    monkeypatch.setattr(claimer, "_LONGEST_WAIT", 3600.0)

    async def wait(queue):
        await eventually(lambda: any(one._wait for _, one in queue._claimers._made))

    return wait
