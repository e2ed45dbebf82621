"""procrastinate as a contender: python with_procrastinate.py <order as JSON>. Prints one line of JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from typing import Any

import procrastinate

logging.disable(logging.CRITICAL)


async def main(order: dict[str, Any]) -> dict[str, Any]:
    jobs, kind = order["jobs"], order["kind"]
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=order["url"], max_size=10))
    started: asyncio.Queue[float] = asyncio.Queue()

    @app.task(queue="bench")
    async def work(n: int) -> None:
        if kind == "latency":
            started.put_nowait(time.perf_counter())

    async def fill() -> None:
        for first in range(0, jobs, 1000):
            await work.batch_defer_async(*[{"n": n} for n in range(first, min(first + 1000, jobs))])

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        began = time.perf_counter()
        if kind == "send":
            for n in range(jobs):
                await work.defer_async(n=n)
        elif kind == "send_concurrent":
            await asyncio.gather(*[work.defer_async(n=n) for n in range(jobs)])
        elif kind == "bulk":
            await fill()
        elif kind == "drain":
            await fill()
            began = time.perf_counter()
            await app.run_worker_async(concurrency=order["concurrency"], wait=False, install_signal_handlers=False)
        else:
            return {"waits": await latency(app, work, started, jobs)}
        return {"seconds": time.perf_counter() - began}


async def latency(app: Any, work: Any, started: asyncio.Queue[float], jobs: int) -> list[float]:
    worker = asyncio.create_task(app.run_worker_async(concurrency=1, install_signal_handlers=False))
    await asyncio.sleep(1)
    waits = []
    for n in range(jobs + 20):
        await asyncio.sleep(0.02)
        began = time.perf_counter()
        await work.defer_async(n=n)
        waits.append(await started.get() - began)
    worker.cancel()
    await asyncio.wait([worker])
    return waits[20:]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.loads(sys.argv[-1])))))
