"""SAQ. It has no call that adds many jobs, so these are added concurrently."""

from __future__ import annotations

import asyncio
from typing import Any

from bench.peers.meter import meter, order
from saq import Queue, Worker

queue = Queue.from_url(order.url)


async def handle(context: Any, *, sent: float) -> None:
    await meter.run_async(sent)


async def open_queue() -> None:
    await queue.connect()


async def add(sent: float) -> None:
    await queue.enqueue("handle", sent=sent)


async def add_many(jobs: int) -> None:
    for first in range(0, jobs, 100):
        await asyncio.gather(*(add(0.0) for _ in range(min(100, jobs - first))))


async def work(concurrency: int) -> None:
    await Worker(queue, functions=[handle], concurrency=concurrency).start()
