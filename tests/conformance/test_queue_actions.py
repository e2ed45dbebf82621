"""What an operator can do to a queue as a whole."""

from __future__ import annotations

import pytest

from jobwire.boundary import Completed, Feature
from jobwire.errors import WrongState
from jobwire.model import State
from jobwire.options import NewJob


async def test_draining_deletes_what_waits_and_nothing_else(queue, consume, work, finished):
    done = await queue.add("done")
    async with work(lambda job: None):
        await finished(queue, done.id)
    await queue.add("held")
    await consume().settle([], claim=1)
    await queue.add_many([NewJob("waits"), NewJob("later", delay=3600)])
    await queue.admin.drain()
    counts = await queue.counts()
    assert (counts[State.WAITING], counts[State.DELAYED]) == (0, 1)
    assert (counts[State.ACTIVE], counts[State.COMPLETED]) == (1, 1)


async def test_draining_deletes_prioritised_jobs_too(queue, needs):
    with needs(queue, Feature.PRIORITIES):
        await queue.add_many([NewJob(1, priority=3), NewJob(2)])
        await queue.admin.drain()
        assert sum((await queue.counts()).values()) == 0


async def test_draining_deletes_delayed_jobs_when_asked_to(queue):
    added = await queue.add_many([NewJob("waits"), NewJob("later", delay=3600)])
    await queue.admin.drain(delayed=True)
    assert sum((await queue.counts()).values()) == 0
    assert [await queue.get(job.id) for job in added] == [None, None]


async def test_draining_a_paused_queue_empties_it(queue, needs):
    with needs(queue, Feature.PAUSE):
        await queue.add(1)
        await queue.admin.pause()
        await queue.add(2)
        await queue.admin.drain()
        assert sum((await queue.counts()).values()) == 0


async def test_cleaning_deletes_the_oldest_finished_jobs_up_to_the_limit(queue, work, eventually):
    async with work(lambda job: None) as worker:
        added = []
        for n in range(5):
            added.append(await queue.add(n))
            await eventually(lambda done=n: worker.stats.completed > done)
    gone = await queue.admin.clean(State.COMPLETED, limit=2)
    assert len(gone) == 2
    assert (await queue.counts())[State.COMPLETED] == 3
    assert [await queue.get(job_id) for job_id in gone] == [None, None]
    assert len(await queue.admin.clean(State.COMPLETED)) == 3
    assert (await queue.counts())[State.COMPLETED] == 0


async def test_cleaning_spares_what_is_not_old_enough(queue, work, finished):
    added = await queue.add(1)
    async with work(lambda job: None):
        await finished(queue, added.id)
    assert list(await queue.admin.clean(State.COMPLETED, older_than=3600)) == []
    assert (await queue.counts())[State.COMPLETED] == 1


async def test_cleaning_one_state_spares_the_others(queue, work, finished):
    async def handler(job):
        if job.data == "bad":
            raise RuntimeError("bad")

    added = await queue.add_many([NewJob("good"), NewJob("bad")])
    async with work(handler):
        for job in added:
            await finished(queue, job.id)
    assert list(await queue.admin.clean(State.FAILED)) == [added[1].id]
    counts = await queue.counts()
    assert (counts[State.COMPLETED], counts[State.FAILED]) == (1, 0)


async def test_obliterating_deletes_everything_and_the_queue_can_be_used_again(queue, work, finished):
    done = await queue.add("done")
    async with work(lambda job: None):
        await finished(queue, done.id)
    await queue.add_many([NewJob(1), NewJob(2, delay=3600)])
    await queue.admin.obliterate()
    assert sum((await queue.counts()).values()) == 0
    assert await queue.get(done.id) is None
    again = await queue.add("again")
    async with work(lambda job: job.data):
        assert (await finished(queue, again.id)).result == "again"


async def test_a_queue_with_running_jobs_is_obliterated_only_by_force(queue, consume):
    added = await queue.add(1)
    consumer = consume()
    [claim] = (await consumer.settle([], claim=1)).claims
    with pytest.raises(WrongState):
        await queue.admin.obliterate()
    assert (await queue.get(added.id)).state is State.ACTIVE
    await queue.admin.obliterate(force=True)
    assert await queue.get(added.id) is None
    [verdict] = (await consumer.settle([Completed(claim, b"1")], claim=0)).verdicts
    assert verdict.value == "lost"
