"""jobwire as a contender: python ours.py <order as JSON>. Prints one line of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from jobwire import NewJob, Queue, Worker, connect
from jobwire.native import PgBossWorker

CHUNK = 1000


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


async def nothing(job: Any) -> None: ...


async def fill(queue: Queue, jobs: int) -> None:
    for first in range(0, jobs, CHUNK):
        await queue.add_many([NewJob({"n": n}) for n in range(first, min(first + CHUNK, jobs))])


async def main(order: dict[str, Any]) -> dict[str, Any]:
    jobs, kind = order["jobs"], order["kind"]
    async with connect(f"pgboss+{order['url']}") as connection, Queue("bench", connection) as queue:
        await queue.add({"n": -1})
        await queue.admin.drain()
        if kind in ("send", "send_concurrent", "bulk"):
            began = time.perf_counter()
            if kind == "send":
                for n in range(jobs):
                    await queue.add({"n": n})
            elif kind == "send_concurrent":
                await asyncio.gather(*[queue.add({"n": n}) for n in range(jobs)])
            else:
                await fill(queue, jobs)
            return {"seconds": time.perf_counter() - began}
        if kind == "drain":
            await fill(queue, jobs)
            finish = Finish(jobs)
            # As for pg-boss: the tables are there before the clock starts, and supervision is off.
            await queue.admin.pause()
            await queue.admin.resume()
            quiet = PgBossWorker(supervise=False, schedule=False)
            worker = Worker(
                "bench", nothing, connection, concurrency=order["concurrency"], observers=[finish], native=quiet
            )
            began = time.perf_counter()
            async with worker:
                await finish.done.wait()
                seconds = time.perf_counter() - began
            return {"seconds": seconds}
        return {"waits": await latency(connection, queue, jobs)}


async def latency(connection: Any, queue: Queue, jobs: int) -> list[float]:
    started: asyncio.Queue[float] = asyncio.Queue()

    async def handle(job: Any) -> None:
        started.put_nowait(time.perf_counter())

    waits: list[float] = []
    async with Worker("bench", handle, connection):
        for n in range(jobs + 20):
            await asyncio.sleep(0.02)
            began = time.perf_counter()
            await queue.add({"n": n})
            waits.append(await started.get() - began)
    return waits[20:]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.loads(sys.argv[-1])))))
