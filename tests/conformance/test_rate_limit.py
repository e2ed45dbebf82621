"""At most so many jobs in so much time, over all workers of the queue."""

from __future__ import annotations

import time

from awaiting import assert_left
from jobwire import Rate
from jobwire.boundary import Feature
from jobwire.options import NewJob


def assert_paced(starts, began, number=2, window=0.5):
    """No job of a later window starts before that window: the first one opened when the worker began, or later.

    A handler may start long after its claim, so the time between two starts proves nothing.
    """
    starts = sorted(starts)
    waits = [start - began for start in starts]
    assert all(wait >= window * (place // number) - 0.005 for place, wait in enumerate(waits)), waits


async def test_no_more_jobs_start_in_a_window_than_the_rate_allows(queue, work, eventually, needs):
    starts = []

    async def handler(job):
        starts.append(time.monotonic())

    with needs(queue, Feature.RATE_LIMIT):
        await queue.add_many([NewJob(n) for n in range(6)])
        began = time.monotonic()
        async with work(handler, concurrency=5, rate=Rate(2, per=0.5)):
            await eventually(lambda: len(starts) == 6)
        assert_paced(starts, began)


async def test_the_rate_is_shared_by_all_workers(queue, work, eventually, needs):
    starts = []

    async def handler(job):
        starts.append(time.monotonic())

    with needs(queue, Feature.RATE_LIMIT):
        await queue.add_many([NewJob(n) for n in range(4)])
        began = time.monotonic()
        async with work(handler, rate=Rate(2, per=0.5)), work(handler, rate=Rate(2, per=0.5)):
            await eventually(lambda: len(starts) == 4)
        assert_paced(starts, began)


async def test_a_consumer_is_told_how_long_it_is_blocked(queue, consume, needs):
    with needs(queue, Feature.RATE_LIMIT):
        await queue.add_many([NewJob(n) for n in range(5)])
        consumer = consume(rate=Rate(2, per=20.0))
        began = time.monotonic()
        claims = list((await consumer.settle([], claim=5)).claims)
        settled = await consumer.settle([], claim=5)
        assert_left(settled.blocked_for, of=20, since=began)
        assert (len(claims), list(settled.claims)) == (2, [])
