"""arq. It has no call that adds many jobs, so these are added concurrently."""

from __future__ import annotations

import asyncio
from typing import Any

from arq.connections import ArqRedis, RedisSettings, create_pool
from arq.worker import Worker
from bench.peers.meter import meter, order

SETTINGS = RedisSettings.from_dsn(order.url)
pools: list[ArqRedis] = []


async def handle(context: Any, sent: float) -> None:
    await meter.run_async(sent)


async def open_queue() -> None:
    pools.append(await create_pool(SETTINGS))


async def add(sent: float) -> None:
    await pools[0].enqueue_job("handle", sent)


async def add_many(jobs: int) -> None:
    for first in range(0, jobs, 100):
        await asyncio.gather(*(add(0.0) for _ in range(min(100, jobs - first))))


async def work(concurrency: int) -> None:
    await Worker([handle], redis_settings=SETTINGS, max_jobs=concurrency, handle_signals=False).async_run()
