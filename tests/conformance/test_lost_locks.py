"""A worker that loses a job must learn it, stop, and change nothing."""

from __future__ import annotations

import asyncio

import pytest

from jobwire.errors import LostLock
from jobwire.model import State

SHORT = {"lease": 0.4, "recover_every": 0.1}


async def test_a_handler_is_told_and_stopped_when_its_job_is_taken_away(queue, work, eventually):
    started = asyncio.Event()
    end = []

    async def handler(job):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            end.append(job.lost.is_set())

    await queue.add(1)
    async with work(handler, **SHORT) as worker:
        await started.wait()
        await queue.admin.obliterate(force=True)
        await eventually(lambda: end)
        await eventually(lambda: worker.stats.lost == 1)
    assert end == [True]
    assert sum((await queue.counts()).values()) == 0


async def test_a_worker_that_lost_a_job_goes_on_with_others(queue, work, finished, eventually):
    started = asyncio.Event()

    async def handler(job):
        if job.data == "lost":
            started.set()
            await asyncio.Event().wait()
        return "fine"

    await queue.add("lost")
    async with work(handler, lease=4) as worker:  # long enough for a busy machine to keep the next job's
        await started.wait()
        await queue.admin.obliterate(force=True)
        await eventually(lambda: worker.stats.lost == 1)
        added = await queue.add("next")
        job = await finished(queue, added.id)
    assert (job.state, job.result) == (State.COMPLETED, "fine")


async def test_extending_a_lost_job_raises(queue, work, eventually):
    started, taken = asyncio.Event(), asyncio.Event()
    raised = []

    async def handler(job):
        await job.extend()
        started.set()
        await taken.wait()
        with pytest.raises(LostLock):
            await job.extend()
        raised.append(job.id)

    added = await queue.add(1)
    async with work(handler, lease=60):
        await started.wait()
        await queue.admin.obliterate(force=True)
        taken.set()
        await eventually(lambda: raised == [added.id])


async def test_a_thread_learns_that_its_job_was_taken_away(queue, work, eventually):
    started, told = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    def handler(job):
        loop.call_soon_threadsafe(started.set)
        told.append(job.lost.wait(20))

    await queue.add(1)
    async with work(handler, **SHORT):
        await started.wait()
        await queue.admin.obliterate(force=True)
        await eventually(lambda: told)
    assert told == [True]


@pytest.mark.slow
async def test_leases_are_renewed_again_after_a_time_without_long_jobs(queue, work, finished):
    async def handler(job):
        await asyncio.sleep(job.data)

    async with work(handler, lease=1.0, recover_every=0.1) as worker:
        for _ in range(2):
            long = await queue.add(2.5)
            assert (await finished(queue, long.id)).state is State.COMPLETED
            await asyncio.sleep(0.5)  # time for the keeper to see that it holds nothing
    assert (worker.stats.completed, worker.stats.lost, worker.stats.recovered) == (2, 0, 0)
