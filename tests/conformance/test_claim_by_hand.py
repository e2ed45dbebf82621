"""`queue.claim()`: a job for a program that has a loop of its own, settled by that program, once."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest

from jobwire.boundary import Feature
from jobwire.errors import InvalidOption, LostLock, Snooze, Unrecoverable, WrongState
from jobwire.model import State
from jobwire.options import NewJob

from .conftest import with_attempts

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


# --- leases -----------------------------------------------------------------------------------------------------------


async def test_a_lost_job_says_so(queue):
    await queue.add(1)
    job = await queue.claim()
    await queue.admin.obliterate(force=True)
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


# --- as a block -------------------------------------------------------------------------------------------------------


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
            await queue.admin.obliterate(force=True)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await program()
    assert "could not settle job" in caplog.text
