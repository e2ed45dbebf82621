"""jobwire, on BullMQ's data."""

from __future__ import annotations

from typing import Any

from bench.peers.meter import meter, order

from jobwire import NewJob, Queue, Worker

URL = f"bullmq+{order.url}"
queue = Queue("bench", URL)


async def handle(job: Any) -> None:
    await meter.run_async(job.data)


async def open_queue() -> None:
    await queue.connection.open()


async def add(sent: float) -> None:
    await queue.add(sent)


async def add_many(jobs: int) -> None:
    for first in range(0, jobs, 1000):
        await queue.add_many([NewJob(0.0) for _ in range(min(1000, jobs - first))])


async def work(concurrency: int) -> None:
    await Worker("bench", handle, URL, concurrency=concurrency).run(signals=False)
