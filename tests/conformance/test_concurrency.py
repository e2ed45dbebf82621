"""Many producers and many workers at once: every job runs, and none runs twice."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

from jobwire.model import State
from jobwire.options import NewJob

PRODUCERS, WORKERS, EACH = 50, 50, 20


async def test_fifty_producers_and_fifty_workers_lose_nothing_and_run_nothing_twice(queue, work, eventually):
    ran = Counter()

    async def produce(producer):
        for n in range(0, EACH, 4):
            await queue.add((producer, n))
            await queue.add_many([NewJob((producer, n + k)) for k in (1, 2, 3)])

    async def counting(job):
        ran[tuple(job.data)] += 1

    async with contextlib.AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(work(counting)) for _ in range(WORKERS)]
        await asyncio.gather(*(produce(producer) for producer in range(PRODUCERS)))
        await eventually(lambda: sum(worker.stats.completed for worker in workers) >= PRODUCERS * EACH, within=150)
    assert set(ran) == {(producer, n) for producer in range(PRODUCERS) for n in range(EACH)}
    assert set(ran.values()) == {1}
    counts = await queue.counts()
    assert counts[State.COMPLETED] == PRODUCERS * EACH
    assert sum(counts.values()) == PRODUCERS * EACH


async def test_a_worker_runs_as_many_jobs_at_once_as_it_may_and_no_more(queue, work, eventually):
    running, most = 0, 0
    full = asyncio.Event()

    async def handler(job):
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 8:
            full.set()
        await full.wait()
        await asyncio.sleep(0)
        running -= 1

    await queue.add_many([NewJob(n) for n in range(40)])
    async with work(handler, concurrency=8) as worker:
        await eventually(lambda: worker.stats.completed == 40)
    assert most == 8


async def test_a_job_added_by_a_handler_is_run(queue, work, eventually):
    seen = []

    async def handler(job):
        seen.append(job.data)
        if job.data < 5:
            await queue.add(job.data + 1)

    await queue.add(0)
    async with work(handler):
        await eventually(lambda: len(seen) == 6)
    assert seen == [0, 1, 2, 3, 4, 5]
