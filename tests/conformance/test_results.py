"""Results, and waiting for them."""

from __future__ import annotations

import asyncio

import pytest

from jobwire.boundary import Feature
from jobwire.errors import JobFailed, JobNotFound, WaitTimeout
from jobwire.model import State
from jobwire.options import NewJob


async def double(job):
    return job.data * 2


@pytest.mark.parametrize("value", [None, 0, 1.5, "text ✓", [], {}, {"nested": [{"deep": None}]}, False])
async def test_a_result_reads_back_as_it_was_returned(queue, work, finished, needs, value):
    async def handler(job):
        return value

    with needs(queue, Feature.RESULTS):
        added = await queue.add(1)
        async with work(handler):
            job = await finished(queue, added.id)
        assert (job.state, job.result) == (State.COMPLETED, value)


async def test_a_completed_job_tells_when_it_ran(queue, work, finished):
    added = await queue.add(1)
    async with work(double):
        job = await finished(queue, added.id)
    assert job.created_at <= job.started_at <= job.finished_at


async def test_waiting_returns_the_result_of_a_job_that_finishes_later(queue, work, needs):
    with needs(queue, Feature.RESULTS):
        added = await queue.add(21)
        waiting = asyncio.create_task(added.wait(timeout=20))
        async with work(double):
            assert await waiting == 42


async def test_waiting_returns_the_result_of_a_job_that_has_finished_before(queue, work, finished, needs):
    with needs(queue, Feature.RESULTS):
        added = await queue.add(21)
        async with work(double):
            await finished(queue, added.id)
        assert await queue.wait(added.id, timeout=20) == 42


async def test_waiting_for_a_job_that_fails_raises_its_error(queue, work):
    async def handler(job):
        raise RuntimeError("mailbox full")

    added = await queue.add(1)
    waiting = asyncio.create_task(added.wait(timeout=20))
    async with work(handler):
        with pytest.raises(JobFailed, match="mailbox full"):
            await waiting
    with pytest.raises(JobFailed, match="mailbox full"):
        await queue.wait(added.id, timeout=20)


async def test_waiting_gives_up_when_its_time_is_over(queue):
    added = await queue.add(1)
    with pytest.raises(WaitTimeout):
        await added.wait(timeout=0.05)


async def test_waiting_for_a_job_that_is_not_there_says_so(queue):
    with pytest.raises(JobNotFound):
        await queue.wait("no-such-job", timeout=20)


async def test_many_callers_wait_at_once_each_for_its_own_job(queue, work, needs):
    with needs(queue, Feature.RESULTS):
        added = await queue.add_many([NewJob(n) for n in range(50)])
        waits = [asyncio.create_task(job.wait(timeout=20)) for job in added]
        async with work(double, concurrency=10):
            assert await asyncio.gather(*waits) == [n * 2 for n in range(50)]


async def test_two_callers_may_wait_for_the_same_job(queue, work, needs):
    with needs(queue, Feature.RESULTS):
        added = await queue.add(4)
        waits = [asyncio.create_task(added.wait(timeout=20)) for _ in range(2)]
        async with work(double):
            assert await asyncio.gather(*waits) == [8, 8]


async def test_waiting_for_a_job_that_is_cancelled_meanwhile_says_so(queue, needs):
    job = await queue.add("x", delay=60)
    waiting = asyncio.create_task(job.wait(20))
    try:
        with needs(queue, Feature.CANCEL):
            await queue.cancel(job.id)
            with pytest.raises(JobFailed, match="cancelled"):
                await waiting
    finally:
        waiting.cancel()
