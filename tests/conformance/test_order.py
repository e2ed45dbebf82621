"""Which job runs next."""

from __future__ import annotations

from jobwire.boundary import Feature
from jobwire.model import State
from jobwire.options import NewJob


async def run_all(queue, work, eventually):
    seen = []
    expected = (await queue.counts())[State.WAITING]

    async def handler(job):
        seen.append(job.data)

    async with work(handler, concurrency=1):
        await eventually(lambda: len(seen) >= expected)
    return seen


async def test_jobs_run_in_the_order_in_which_they_were_added(queue, work, eventually):
    await queue.add_many([NewJob(n) for n in range(10)])
    assert await run_all(queue, work, eventually) == list(range(10))


async def test_the_more_urgent_job_runs_first_in_the_protocols_own_direction(queue, work, eventually, needs):
    with needs(queue, Feature.PRIORITIES):
        urgent, normal, idle = (1, 5, 9) if queue.capabilities.priority == "low_first" else (9, 5, 1)
        await queue.add_many(
            [NewJob("idle", priority=idle), NewJob("urgent", priority=urgent), NewJob("normal", priority=normal)]
        )
        order = ["urgent", "normal", "idle"]
        if queue.capabilities.priority_classes == 2:
            order = ["urgent", "idle", "normal"]
        assert [job.data for job in await queue.jobs(State.WAITING)] == order
        assert await run_all(queue, work, eventually) == order


async def test_jobs_of_one_priority_keep_their_order(queue, work, eventually, needs):
    with needs(queue, Feature.PRIORITIES):
        await queue.add_many([NewJob(n, priority=3) for n in range(10)])
        assert await run_all(queue, work, eventually) == list(range(10))


async def test_a_job_shows_its_priority(queue, needs):
    with needs(queue, Feature.PRIORITIES):
        added = await queue.add(1, priority=7)
        assert (await queue.get(added.id)).priority == 7


async def test_a_lifo_job_runs_before_those_that_wait(queue, work, eventually, needs):
    with needs(queue, Feature.LIFO):
        await queue.add_many([NewJob("first"), NewJob("second"), NewJob("jumps the queue", lifo=True)])
        assert await run_all(queue, work, eventually) == ["jumps the queue", "first", "second"]
