"""pgqueuer as a contender: python with_pgqueuer.py <order as JSON>. Prints one line of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import asyncpg
import uvloop
from pgqueuer import AsyncpgPoolDriver, PgQueuer, Queries
from pgqueuer.domain.types import QueueExecutionMode


async def main(order: dict[str, Any]) -> dict[str, Any]:
    jobs, kind, width = order["jobs"], order["kind"], order["concurrency"]
    async with asyncpg.create_pool(order["url"], min_size=2, max_size=10) as pool:
        driver = AsyncpgPoolDriver(pool)
        queries = Queries(driver)
        await queries.install()
        pgq = PgQueuer(driver)
        started: asyncio.Queue[float] = asyncio.Queue()

        @pgq.entrypoint("bench")
        async def work(job: Any) -> None:
            if kind == "latency":
                started.put_nowait(time.perf_counter())

        async def fill() -> None:
            for first in range(0, jobs, 1000):
                payloads = [json.dumps({"n": n}).encode() for n in range(first, min(first + 1000, jobs))]
                await queries.enqueue(["bench"] * len(payloads), payloads, [0] * len(payloads))

        began = time.perf_counter()
        if kind == "send":
            for n in range(jobs):
                await queries.enqueue("bench", json.dumps({"n": n}).encode())
        elif kind == "send_concurrent":
            await asyncio.gather(*[queries.enqueue("bench", json.dumps({"n": n}).encode()) for n in range(jobs)])
        elif kind == "bulk":
            await fill()
        elif kind == "drain":
            await fill()
            began = time.perf_counter()
            # It asks for room for two batches, so a batch is half of the jobs that may run at once.
            batch = max(1, width // 2)
            await pgq.qm.run(batch_size=batch, mode=QueueExecutionMode.drain, max_concurrent_tasks=2 * batch)
        else:
            return {"waits": await latency(pgq, queries, started, jobs)}
        return {"seconds": time.perf_counter() - began}


async def latency(pgq: Any, queries: Any, started: asyncio.Queue[float], jobs: int) -> list[float]:
    worker = asyncio.create_task(pgq.qm.run(batch_size=1))
    await asyncio.sleep(1)
    waits = []
    for n in range(jobs + 20):
        await asyncio.sleep(0.02)
        began = time.perf_counter()
        await queries.enqueue("bench", json.dumps({"n": n}).encode())
        waits.append(await started.get() - began)
    worker.cancel()
    await asyncio.wait([worker])
    return waits[20:]


if __name__ == "__main__":
    print(json.dumps(uvloop.run(main(json.loads(sys.argv[-1])))))
