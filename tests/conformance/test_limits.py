"""Limits that the queue itself carries, and handlers that ask for a rest."""

from __future__ import annotations

import asyncio
import time

import pytest

from awaiting import assert_left
from jobwire import Rate
from jobwire.boundary import Feature
from jobwire.errors import InvalidOption, RateLimited
from jobwire.model import Limits, State
from jobwire.options import NewJob

from .test_rate_limit import assert_paced


async def test_no_more_jobs_run_at_a_time_than_the_queue_allows(queue, work, needs, eventually):
    running, most, done = set(), [], []

    async def handle(job):
        running.add(job.id)
        most.append(len(running))
        await asyncio.sleep(0.02)
        running.remove(job.id)
        done.append(job.id)

    with needs(queue, Feature.LIMITS):
        await queue.admin.limit_concurrency(2)
        assert (await queue.admin.limits()).concurrency == 2
        await queue.add_many([NewJob(n) for n in range(8)])
        async with work(handle, concurrency=5), work(handle, concurrency=5):
            await eventually(lambda: len(done) == 8)
        assert max(most) == 2
        await queue.admin.limit_concurrency(None)
        assert await queue.admin.limits() == Limits()
        with pytest.raises(InvalidOption):
            await queue.admin.limit_concurrency(0)


async def test_no_more_jobs_start_in_a_window_than_the_queue_allows(queue, work, needs, eventually):
    starts = []

    async def handle(job):
        starts.append(time.monotonic())

    with needs(queue, Feature.LIMITS):
        await queue.admin.limit_rate(Rate(2, per=0.5))
        assert (await queue.admin.limits()).rate == Rate(2, per=0.5)
        await queue.add_many([NewJob(n) for n in range(5)])
        began = time.monotonic()
        async with work(handle, concurrency=5):
            await eventually(lambda: len(starts) == 5)
        assert_paced(starts, began)
        await queue.admin.limit_rate(None)
        assert (await queue.admin.limits()).rate is None


async def test_a_throttled_queue_starts_nothing_until_it_is_let_go(queue, consume, needs):
    with needs(queue, Feature.THROTTLE, Feature.RATE_LIMIT):
        began = time.monotonic()
        await queue.admin.throttle(20)
        await queue.add(1)
        consumer = consume(rate=Rate(100, per=1.0))
        settled = await consumer.settle([], claim=1)
        assert list(settled.claims) == []
        assert_left(settled.blocked_for, of=20, since=began)
        assert_left((await queue.admin.limits()).blocked_for, of=20, since=began)
        await queue.admin.throttle(0)
        assert len((await consumer.settle([], claim=1)).claims) == 1


async def test_a_rate_that_is_no_rate_is_refused_before_anything_is_written(queue, needs):
    with pytest.raises(InvalidOption, match=r"must be a Rate, here Rate\(2, per=60\)"):
        await queue.admin.limit_rate((2, 60))
    with pytest.raises(InvalidOption, match=r"must be a Rate, here Rate\(2\)"):
        await queue.admin.limit_rate(2)
    with needs(queue, Feature.LIMITS):
        assert (await queue.admin.limits()).rate is None


async def test_a_rate_limited_handler_runs_again_after_the_time_and_is_charged_no_attempt(queue, work, needs):
    starts = []

    async def handle(job):
        starts.append(time.monotonic())
        if len(starts) == 1:
            raise RateLimited(0.4)
        return job.attempts_made

    with needs(queue, Feature.THROTTLE):
        await queue.admin.limits()
        first = await queue.add(1)
        second = await queue.add(2)
        async with work(handle) as worker:
            assert await first.wait(10) == 0
            assert await second.wait(10) == 0
        assert starts[1] - starts[0] >= 0.35, starts
        assert (worker.stats.released, len(starts)) == (1, 3)
        assert (await queue.counts())[State.COMPLETED] == 2


async def test_a_plain_function_in_a_process_can_ask_for_a_rest_too(queue, work, needs):
    with needs(queue, Feature.THROTTLE):
        await queue.admin.limits()
        job = await queue.add("rest")
        async with work(_rest_once, executor="process") as worker:
            assert await job.wait(20) == "rested"
        assert worker.stats.released == 1


def _rest_once(job):
    if job.data == "rest":
        job.update_data("rested")
        raise RateLimited(0.05)
    return job.data
