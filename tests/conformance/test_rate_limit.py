"""At most so many jobs in so much time, over all workers of the queue."""

from __future__ import annotations

import time

from jobwire.options import NewJob


async def test_no_more_jobs_start_in_a_window_than_the_rate_allows(queue, work, eventually, needs):
    starts = []

    async def handler(job):
        starts.append(time.monotonic())

    with needs(queue, "rate_limit"):
        await queue.add_many([NewJob(n) for n in range(6)])
        async with work(handler, concurrency=5, rate=(2, 0.5)):
            await eventually(lambda: len(starts) == 6)
        assert starts[2] - starts[0] >= 0.4, starts
        assert starts[4] - starts[0] >= 0.9, starts


async def test_the_rate_is_shared_by_all_workers(queue, work, eventually, needs):
    starts = []

    async def handler(job):
        starts.append(time.monotonic())

    with needs(queue, "rate_limit"):
        await queue.add_many([NewJob(n) for n in range(4)])
        async with work(handler, rate=(2, 0.5)), work(handler, rate=(2, 0.5)):
            await eventually(lambda: len(starts) == 4)
        assert starts[2] - starts[0] >= 0.4, starts


async def test_a_consumer_is_told_how_long_it_is_blocked(queue, consume, needs):
    with needs(queue, "rate_limit"):
        await queue.add_many([NewJob(n) for n in range(5)])
        consumer = consume(rate=(2, 20.0))
        claims = list((await consumer.settle([], claim=5)).claims)
        settled = await consumer.settle([], claim=5)
        assert (len(claims), list(settled.claims)) == (2, [])
        assert 15 < settled.blocked_for <= 20
