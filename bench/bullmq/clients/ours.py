"""jobwire as a contender: python ours.py <order as JSON>. Prints one line of JSON."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable
from typing import Any

from jobwire import ActiveJob, NewJob, Queue, Worker


class Finish:
    """An observer that tells when so many jobs have been completed."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs
        self.done = asyncio.Event()

    def started(self, *_: Any) -> None: ...

    def settled(self, *_: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.done.set()


class Order:
    """What to do, and the client's objects for it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.jobs: int = fields["jobs"]
        self.url = f"bullmq+{fields['url']}?prefix={fields['prefix']}"

    def queue(self) -> Queue:
        return Queue(self.fields["queue"], self.url)

    def worker(self, handler: Any, **options: Any) -> Worker:
        return Worker(self.fields["queue"], handler, self.url, **options)


async def timed(work: Awaitable[Any]) -> dict[str, float]:
    gc.collect()
    gc.freeze()  # as a service would: a run this short should not pay for one walk over all that was imported
    cpu, began = time.process_time(), time.perf_counter()
    await work
    return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}


async def bulk_add(order: Order) -> dict[str, Any]:
    async with order.queue() as queue:
        await queue.add_many([NewJob({"n": -1}, "job")])

        async def add_all() -> None:
            chunk = order.fields["chunk"]
            for first in range(0, order.jobs, chunk):
                await queue.add_many(NewJob({"n": n}, "job") for n in range(first, min(first + chunk, order.jobs)))

        return await timed(add_all())


async def concurrent_add(order: Order) -> dict[str, Any]:
    async with order.queue() as queue:
        await queue.add({"n": -1}, name="job")

        async def add_all() -> None:
            await asyncio.gather(*[queue.add({"n": n}, name="job") for n in range(order.jobs)])

        return await timed(add_all())


async def process(order: Order) -> dict[str, Any]:
    finish = Finish(order.jobs)

    async def handle(job: ActiveJob) -> None:
        return None

    worker = order.worker(handle, concurrency=order.fields["concurrency"], observers=[finish])
    await worker.connection.open()
    # A group, so that a worker that dies ends the measurement instead of leaving it to wait.
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(timed(finish.done.wait()))
        group.create_task(worker.run(signals=False))
        await answer
        await worker.stop()
    return answer.result()


async def latency(order: Order) -> dict[str, Any]:
    started: asyncio.Queue[float] = asyncio.Queue()
    completed: asyncio.Queue[None] = asyncio.Queue()

    class Completions:
        def started(self, *_: Any) -> None: ...

        def settled(self, *_: Any) -> None:
            completed.put_nowait(None)

    async def handle(job: ActiveJob) -> None:
        started.put_nowait(time.perf_counter())

    waits = []

    async def add_one_by_one(queue: Queue) -> None:
        for n in range(order.jobs + order.fields["warmup"]):
            await asyncio.sleep(order.fields["idle"])
            began = time.perf_counter()
            await queue.add({"n": n}, name="job")
            waits.append(await started.get() - began)
            await completed.get()

    worker = order.worker(handle, observers=[Completions()])
    async with order.queue() as queue, asyncio.TaskGroup() as group:
        adding = group.create_task(add_one_by_one(queue))
        group.create_task(worker.run(signals=False))
        await adding
        await worker.stop()
    return {"waits": waits[order.fields["warmup"] :]}


SCENARIOS = {"bulk_add": bulk_add, "concurrent_add": concurrent_add, "process": process, "latency": latency}

if __name__ == "__main__":
    order = Order(json.loads(sys.argv[1]))
    print(json.dumps(asyncio.run(SCENARIOS[order.fields["scenario"]](order))), flush=True)
