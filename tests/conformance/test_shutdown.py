"""A worker that stops leaves no job behind."""

from __future__ import annotations

import asyncio

from jobwire.model import State
from jobwire.options import NewJob


async def test_stopping_waits_for_the_running_jobs_and_claims_no_more(queue, work):
    started, go_on = asyncio.Event(), asyncio.Event()

    async def handler(job):
        started.set()
        await go_on.wait()
        return "finished"

    added = await queue.add_many([NewJob(1), NewJob(2)])
    worker = work(handler)
    async with worker:
        await started.wait()
        stopping = asyncio.create_task(worker.stop())
        done, _ = await asyncio.wait([stopping], timeout=0.1)
        assert not done
        go_on.set()
        await asyncio.wait_for(stopping, 20)
    assert (await queue.get(added[0].id)).result == "finished"
    assert (await queue.get(added[1].id)).state is State.WAITING
    assert worker.stats.completed == 1


async def test_a_job_that_does_not_finish_in_time_is_handed_back_uncharged(queue, work):
    started = asyncio.Event()

    async def handler(job):
        started.set()
        await asyncio.Event().wait()

    added = await queue.add(1)
    worker = work(handler, shutdown_timeout=0.1)
    async with worker:
        await started.wait()
        await asyncio.wait_for(worker.stop(), 20)  # the handler itself never ends
    job = await queue.get(added.id)
    assert (job.state, job.attempts_made) == (State.WAITING, 0)
    assert worker.stats.released == 1


async def test_stopping_at_once_hands_every_running_job_back(queue, work, eventually):
    running = []

    async def handler(job):
        running.append(job.id)
        await asyncio.Event().wait()

    await queue.add_many([NewJob(n) for n in range(5)])
    worker = work(handler, concurrency=3)
    async with worker:
        await eventually(lambda: len(running) == 3)
        await asyncio.wait_for(worker.stop(now=True), 20)
    counts = await queue.counts()
    assert (counts[State.WAITING], counts[State.ACTIVE]) == (5, 0)


async def test_a_job_handed_back_is_run_next_by_another_worker(queue, work, finished):
    started = asyncio.Event()

    async def stuck(job):
        started.set()
        await asyncio.Event().wait()

    added = await queue.add(1)
    async with work(stuck, shutdown_timeout=0):
        await started.wait()
    async with work(lambda job: "done by another"):
        assert (await finished(queue, added.id)).result == "done by another"


async def test_an_idle_worker_stops_at_once(queue, work, eventually, no_polling):
    async with work(lambda job: None) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        await asyncio.wait_for(worker.stop(), 20)  # it would have waited for minutes


async def test_run_returns_when_the_worker_is_stopped(queue, work, finished):
    added = await queue.add(1)
    worker = work(lambda job: "ran")
    running = asyncio.create_task(worker.run(signals=False))
    assert (await finished(queue, added.id)).result == "ran"
    await worker.stop()
    await asyncio.wait_for(running, 20)
