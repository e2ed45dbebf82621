"""A worker cancels a job that it runs. What the handler does then counts; otherwise the job fails."""

from __future__ import annotations

import asyncio
import threading

import pytest

from jobwire.errors import JobCancelled
from jobwire.model import State

from .conftest import with_attempts


@with_attempts(3)
async def test_a_cancelled_job_fails_for_good(queue, work, tries, finished, eventually):
    started = asyncio.Event()

    async def handler(job):
        started.set()
        await asyncio.Event().wait()

    added = await queue.add(1, **tries.job)
    async with work(handler, **tries.worker) as worker:
        await started.wait()
        assert worker.cancel(added.id, "the customer left") is True
        job = await finished(queue, added.id)
        await eventually(lambda: worker.stats.failed == 1)
        assert worker.cancel(added.id) is False
    assert (job.state, job.error) == (State.FAILED, "cancelled: the customer left")
    assert (worker.stats.retried, worker.stats.released) == (0, 0)


@with_attempts(2)
async def test_with_retry_a_cancelled_job_has_its_next_attempt(queue, work, tries, finished):
    started, runs = asyncio.Event(), []

    async def handler(job):
        runs.append(job.attempts_made)
        if len(runs) == 1:
            started.set()
            await asyncio.Event().wait()
        return "second time"

    added = await queue.add(1, **tries.job)
    async with work(handler, **tries.worker) as worker:
        await started.wait()
        assert worker.cancel(added.id, retry=True)
        job = await finished(queue, added.id)
    assert (job.state, job.result, runs) == (State.COMPLETED, "second time", [0, 1])


@with_attempts(2)
async def test_with_retry_the_last_attempt_fails(queue, work, tries, finished, eventually):
    runs = []

    async def handler(job):
        runs.append(job.id)
        await asyncio.Event().wait()

    added = await queue.add(1, **tries.job)
    async with work(handler, **tries.worker) as worker:
        for number in (1, 2):
            await eventually(lambda number=number: len(runs) == number)
            assert worker.cancel(added.id, "enough", retry=True)
        job = await finished(queue, added.id)
    assert (job.state, job.error) == (State.FAILED, "cancelled: enough")


async def test_a_cancelled_handler_that_returns_completes_its_job(queue, work, finished):
    started = asyncio.Event()

    async def handler(job):
        try:
            started.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return {"saved": job.cancelled}

    added = await queue.add(1)
    async with work(handler) as worker:
        await started.wait()
        assert worker.cancel(added.id)
        job = await finished(queue, added.id)
    assert (job.state, job.result) == (State.COMPLETED, {"saved": True})


@pytest.mark.parametrize("stops", [True, False])
async def test_a_thread_is_asked_to_stop(queue, work, finished, eventually, stops):
    began, asked = threading.Event(), threading.Event()

    def handler(job):
        began.set()
        assert asked.wait(20)
        if job.cancelled and stops:
            raise JobCancelled
        return "went on"

    added = await queue.add(1)
    async with work(handler) as worker:
        await eventually(began.is_set)
        assert worker.cancel(added.id, "no longer wanted") is True
        asked.set()
        job = await finished(queue, added.id)
    expected = (State.FAILED, "cancelled: no longer wanted") if stops else (State.COMPLETED, None)
    assert (job.state, job.error) == expected


async def test_other_jobs_of_the_worker_go_on(queue, work, finished, eventually):
    running, go_on = [], asyncio.Event()

    async def handler(job):
        running.append(job.id)
        await go_on.wait()
        return "done"

    jobs = [await queue.add(n) for n in range(3)]
    async with work(handler, concurrency=3) as worker:
        await eventually(lambda: len(running) == 3)
        assert worker.cancel(jobs[1].id)
        assert (await finished(queue, jobs[1].id)).state is State.FAILED
        go_on.set()
        ended = [await finished(queue, job.id) for job in (jobs[0], jobs[2])]
    assert [job.result for job in ended] == ["done", "done"]


async def test_a_worker_cancels_only_what_it_runs_itself(queue, work, finished):
    started, go_on = asyncio.Event(), asyncio.Event()

    async def handler(job):
        started.set()
        await go_on.wait()
        return "done"

    added = await queue.add(1)
    async with work(handler):
        await started.wait()
        async with work(handler, worker_id="another") as another:
            assert another.cancel(added.id) is False
        go_on.set()
        assert (await finished(queue, added.id)).result == "done"
