"""One worker is paused: it takes no job, others do, and what it had in hand leaves no trace."""

from __future__ import annotations

import asyncio

from jobwire.model import State
from jobwire.options import NewJob


async def echo(job):
    return job.data


async def test_a_paused_worker_leaves_jobs_waiting_until_it_is_resumed(queue, work, eventually, finished, no_polling):
    async with work(echo) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        await worker.pause()
        added = await queue.add("later")
        assert (await queue.get(added.id)).state is State.WAITING
        assert worker.stats.claimed == 0
        worker.resume()
        assert (await finished(queue, added.id)).result == "later"


async def test_a_worker_that_is_paused_in_its_wait_for_work_leaves_the_jobs_to_others(
    queue, work, eventually, finished, no_polling
):
    async with work(echo) as paused, work(echo, worker_id="other") as other:
        await eventually(lambda: paused.stats.calls > 0 and other.stats.calls > 0)
        await paused.pause()
        for n in range(5):
            added = await queue.add(n)
            assert (await finished(queue, added.id)).result == n
        await eventually(lambda: other.stats.completed == 5)
        assert paused.stats.claimed == 0


async def test_a_job_added_just_as_the_worker_is_paused_runs_or_waits_untouched(queue, work, eventually):
    """The wake-up may find the worker before, while and after its wait is ended."""
    async with work(echo) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        for n in range(30):
            adding = asyncio.create_task(queue.add(n))
            if n % 3:
                await asyncio.sleep(0.001 * (n % 10))
            await worker.pause()
            job = await queue.get((await adding).id)
            if job.state is State.WAITING:
                assert (job.attempts_made, job.started_at) == (0, None)
            else:
                assert (job.state, job.result) == (State.COMPLETED, n)
            worker.resume()
            await eventually(lambda done=n + 1: worker.stats.completed == done)
        assert (worker.stats.released, worker.stats.lost) == (0, 0)
    counts = await queue.counts()
    assert (counts[State.COMPLETED], counts[State.ACTIVE]) == (30, 0)


async def test_pausing_waits_for_the_running_jobs(queue, work):
    started, go_on = asyncio.Event(), asyncio.Event()

    async def handler(job):
        started.set()
        await go_on.wait()
        return "finished"

    added = await queue.add_many([NewJob(1), NewJob(2)])
    async with work(handler) as worker:
        await started.wait()
        pausing = asyncio.create_task(worker.pause())
        await worker.pause(wait=False)
        assert not pausing.done()
        go_on.set()
        await asyncio.wait_for(pausing, 20)
        assert (await queue.get(added[0].id)).result == "finished"
        assert (await queue.get(added[1].id)).state is State.WAITING


async def test_a_worker_that_starts_paused_keeps_its_duties(queue, work, consume, eventually):
    lost = consume(lease=0.4)
    added = await queue.add(1)
    [claim] = (await lost.settle([], 1)).claims
    assert claim.job.id == added.id
    # On a busy machine its own claim may be lost too, with a lease as short as this.
    worker = work(echo, lease=0.4, recover_every=0.1, max_stalled=100)
    await worker.pause()
    async with worker:
        await eventually(lambda: worker.stats.recovered == 1)
        assert worker.stats.claimed == 0
        worker.resume()
        await eventually(lambda: worker.stats.completed == 1)


async def test_a_paused_worker_stops_as_any_other(queue, work, eventually):
    async with work(echo) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        await worker.pause()
        added = await queue.add(1)
        await asyncio.wait_for(worker.stop(), 20)
    assert (await queue.get(added.id)).state is State.WAITING
