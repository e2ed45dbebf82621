"""streaQ. A worker object can be entered once, so one of them adds jobs and another runs them."""

from __future__ import annotations

from contextlib import AsyncExitStack

from bench.peers.meter import meter, order
from streaq import Worker

adder = Worker(redis_url=order.url)
runner = Worker(redis_url=order.url, concurrency=order.concurrency, handle_signals=False)
opened = AsyncExitStack()


async def handle(sent: float) -> None:
    await meter.run_async(sent)


task = adder.task(name="handle")(handle)
runner.task(name="handle", silent=True)(handle)


async def open_queue() -> None:
    await opened.enter_async_context(adder)


async def add(sent: float) -> None:
    await task.enqueue(sent)


async def add_many(jobs: int) -> None:
    for first in range(0, jobs, 1000):
        await adder.enqueue_many([task.enqueue(0.0) for _ in range(min(1000, jobs - first))])


async def work(concurrency: int) -> None:
    await runner.run_async()
