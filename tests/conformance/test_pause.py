"""A paused queue takes jobs in and hands none out."""

from __future__ import annotations

import asyncio

from jobwire.boundary import Feature
from jobwire.model import State
from jobwire.options import NewJob


async def waiting_in(queue) -> int:
    counts = await queue.counts()
    return counts[State.WAITING] + counts.get(State.PAUSED, 0)


async def test_a_queue_tells_whether_it_is_paused(queue, needs):
    with needs(queue, Feature.PAUSE):
        assert await queue.admin.paused() is False
        await queue.admin.pause()
        await queue.admin.pause()
        assert await queue.admin.paused() is True
        await queue.admin.resume()
        assert await queue.admin.paused() is False


async def test_no_job_is_claimed_while_the_queue_is_paused(queue, consume, needs):
    with needs(queue, Feature.PAUSE):
        await queue.add(1)
        await queue.admin.pause()
        await queue.add(2)
        assert list((await consume().settle([], claim=5)).claims) == []
        assert await waiting_in(queue) == 2


async def test_a_resumed_queue_runs_everything_in_order(queue, work, eventually, needs):
    seen = []

    async def handler(job):
        seen.append(job.data)

    with needs(queue, Feature.PAUSE):
        await queue.add_many([NewJob(n) for n in range(3)])
        await queue.admin.pause()
        await queue.add_many([NewJob(n) for n in range(3, 6)])
        async with work(handler):
            await queue.admin.resume()
            await eventually(lambda: len(seen) == 6)
        assert seen == [0, 1, 2, 3, 4, 5]


async def test_an_idle_worker_wakes_up_when_the_queue_is_resumed(queue, work, eventually, needs, no_polling):
    with needs(queue, Feature.PAUSE):
        seen = asyncio.Event()

        async def handler(job):
            seen.set()

        await queue.admin.pause()
        async with work(handler) as worker:
            await queue.add(1)
            await eventually(lambda: worker.stats.calls > 0)
            assert not seen.is_set()
            await queue.admin.resume()
            await asyncio.wait_for(seen.wait(), 20)


async def test_a_job_that_runs_when_the_queue_is_paused_finishes(queue, work, finished, needs):
    with needs(queue, Feature.PAUSE):
        started, go_on = asyncio.Event(), asyncio.Event()

        async def handler(job):
            started.set()
            await go_on.wait()
            return "done"

        added = await queue.add(1)
        async with work(handler):
            await started.wait()
            await queue.admin.pause()
            go_on.set()
            job = await finished(queue, added.id)
        assert (job.state, job.result) == (State.COMPLETED, "done")


async def test_a_delayed_job_that_comes_due_while_paused_waits(queue, consume, eventually, needs):
    with needs(queue, Feature.PAUSE):
        await queue.admin.pause()
        await queue.add(1, delay=0.1)
        consumer = consume()

        async def claimed_nothing_and_due():
            settled = await consumer.settle([], claim=1)
            assert list(settled.claims) == []
            return await waiting_in(queue) == 1

        await eventually(claimed_nothing_and_due)
        await queue.admin.resume()
        assert len((await consumer.settle([], claim=1)).claims) == 1
