"""taskiq with the stream broker of taskiq-redis, which acknowledges. It has no call that adds many jobs."""

from __future__ import annotations

import asyncio

from bench.peers.meter import meter, order
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

broker = RedisStreamBroker(order.url)


@broker.task
async def handle(sent: float) -> None:
    await meter.run_async(sent)


async def open_queue() -> None:
    await broker.startup()


async def add(sent: float) -> None:
    await handle.kiq(sent)


async def add_many(jobs: int) -> None:
    for first in range(0, jobs, 100):
        await asyncio.gather(*(add(0.0) for _ in range(min(100, jobs - first))))


async def work(concurrency: int) -> None:
    await run_receiver_task(broker, max_async_tasks=concurrency)
