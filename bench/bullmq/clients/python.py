"""The official Python client as a contender: python python.py <order as JSON>. Prints one line of JSON."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bullmq import Queue, Worker


class Order:
    """What to do, and the client's objects for it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.jobs: int = fields["jobs"]
        self.options = {"connection": fields["url"], "prefix": fields["prefix"]}

    def queue(self) -> Queue:
        return Queue(self.fields["queue"], self.options)

    def worker(self, processor: Callable[..., Awaitable[Any]], **options: Any) -> Worker:
        return Worker(self.fields["queue"], processor, {**self.options, **options})


async def timed(work: Awaitable[Any]) -> dict[str, float]:
    gc.collect()
    gc.freeze()  # as a service would: a run this short should not pay for one walk over all that was imported
    cpu, began = time.process_time(), time.perf_counter()
    await work
    return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}


async def bulk_add(order: Order) -> dict[str, Any]:
    queue = order.queue()
    await queue.addBulk([{"name": "job", "data": {"n": -1}}])

    async def add_all() -> None:
        chunk = order.fields["chunk"]
        for first in range(0, order.jobs, chunk):
            last = min(first + chunk, order.jobs)
            await queue.addBulk([{"name": "job", "data": {"n": n}} for n in range(first, last)])

    return await timed(add_all())


async def concurrent_add(order: Order) -> dict[str, Any]:
    queue = order.queue()
    await queue.add("job", {"n": -1})

    async def add_all() -> None:
        await asyncio.gather(*[queue.add("job", {"n": n}) for n in range(order.jobs)])

    return await timed(add_all())


async def process(order: Order) -> dict[str, Any]:
    done = asyncio.Event()
    completed = 0

    async def handle(job: Any, token: str) -> None:
        return None

    def count(*_: Any) -> None:
        nonlocal completed
        completed += 1
        if completed == order.jobs:
            done.set()

    worker = order.worker(handle, concurrency=order.fields["concurrency"], autorun=False)
    worker.on("completed", count)

    async def work_all() -> None:
        run = asyncio.ensure_future(worker.run())
        await done.wait()
        run.cancel()

    return await timed(work_all())


async def latency(order: Order) -> dict[str, Any]:
    queue = order.queue()
    started: asyncio.Queue[float] = asyncio.Queue()
    completed: asyncio.Queue[None] = asyncio.Queue()

    async def handle(job: Any, token: str) -> None:
        started.put_nowait(time.perf_counter())

    worker = order.worker(handle)
    worker.on("completed", lambda *_: completed.put_nowait(None))
    waits = []
    for n in range(order.jobs + order.fields["warmup"]):
        await asyncio.sleep(order.fields["idle"])
        began = time.perf_counter()
        await queue.add("job", {"n": n})
        waits.append(await started.get() - began)
        await completed.get()
    return {"waits": waits[order.fields["warmup"] :]}


SCENARIOS = {"bulk_add": bulk_add, "concurrent_add": concurrent_add, "process": process, "latency": latency}

if __name__ == "__main__":
    order = Order(json.loads(sys.argv[1]))
    print(json.dumps(asyncio.run(SCENARIOS[order.fields["scenario"]](order))), flush=True)
    os._exit(0)
