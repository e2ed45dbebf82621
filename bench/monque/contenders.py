"""Who drains the queue, and how. All in Python on one driver, so that the way of claiming is what differs.

Each answers with the seconds from the first claim to the last completion, connecting not counted.

* `peer`: the peer's published way. A poll asks for all free slots in parallel, one findOneAndUpdate each; a job that
  ends asks for the next poll, which comes 100 ms after the last such request.
* `peer, no waits`: the same calls without that debounce: a slot claims again as soon as its job is completed.
* `jobwire`: a Worker.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

from pymongo import AsyncMongoClient, ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from jobwire import Worker, connect
from jobwire.boundary import Claim, Outcome, Verdict

Jobs = AsyncCollection[dict[str, Any]]
QUEUE = "bench"
INSTANCE = "bench-peer"
_DEBOUNCE = 0.1
_UNLOCK = {"lockedAt": "", "claimedBy": "", "lastHeartbeat": "", "failReason": ""}


async def claim(jobs: Jobs) -> dict[str, Any] | None:
    now = datetime.now(UTC)
    taken = {
        "status": "processing", "claimedBy": INSTANCE, "lockedAt": now, "lastHeartbeat": now,
        "heartbeatInterval": 30_000, "updatedAt": now,
    }  # fmt: skip
    return await jobs.find_one_and_update(
        {"name": QUEUE, "status": "pending", "nextRunAt": {"$lte": now}},
        {"$set": taken},
        sort=[("nextRunAt", 1)],
        return_document=ReturnDocument.AFTER,
    )


async def complete(jobs: Jobs, job: dict[str, Any]) -> None:
    await jobs.find_one_and_update(
        {"_id": job["_id"], "status": "processing", "claimedBy": INSTANCE},
        {"$set": {"status": "completed", "updatedAt": datetime.now(UTC)}, "$unset": _UNLOCK},
        return_document=ReturnDocument.AFTER,
    )


async def peer_no_waits(url: str, database: str, concurrency: int, total: int) -> float:
    async with AsyncMongoClient[dict[str, Any]](url, w="majority") as client:
        jobs = client[database]["monque_jobs"]
        await client.admin.command("ping")
        began = time.perf_counter()

        async def slot() -> None:
            while (job := await claim(jobs)) is not None:
                await complete(jobs, job)

        await asyncio.gather(*(slot() for _ in range(concurrency)))
        return time.perf_counter() - began


async def peer(url: str, database: str, concurrency: int, total: int) -> float:
    async with AsyncMongoClient[dict[str, Any]](url, w="majority") as client:
        jobs = client[database]["monque_jobs"]
        await client.admin.command("ping")
        began = time.perf_counter()
        done = 0
        running: set[asyncio.Task[None]] = set()
        loop = asyncio.get_running_loop()
        poll_at = loop.time()

        async def run(job: dict[str, Any]) -> None:
            nonlocal done, poll_at
            await complete(jobs, job)
            done += 1
            poll_at = loop.time() + _DEBOUNCE

        while done < total:
            if loop.time() < poll_at:
                await asyncio.sleep(poll_at - loop.time())
                continue
            poll_at = loop.time() + 1.0
            for job in await asyncio.gather(*(claim(jobs) for _ in range(concurrency - len(running)))):
                if job is not None:
                    task = asyncio.create_task(run(job))
                    running.add(task)
                    task.add_done_callback(running.discard)
            await asyncio.sleep(0)
            if running:
                await asyncio.wait(running)
        return time.perf_counter() - began


class Tally:
    """Told of every completion, so that nobody has to look for the last one."""

    def __init__(self, total: int) -> None:
        self.left = total
        self.full = asyncio.Event()

    def started(self, claim: Claim) -> None: ...

    def settled(self, outcome: Outcome, verdict: Verdict) -> None:
        self.left -= verdict is Verdict.COMPLETED
        if not self.left:
            self.full.set()


async def jobwire(url: str, database: str, concurrency: int, total: int) -> float:
    async def nothing(job: Any) -> None:
        return None

    tally = Tally(total)
    async with connect("monque+" + url.replace("/?", f"/{database}?")) as connection:
        worker = Worker(QUEUE, nothing, connection, concurrency=concurrency, observers=[tally])
        began = time.perf_counter()
        running = asyncio.create_task(worker.run(signals=False))
        await tally.full.wait()
        took = time.perf_counter() - began
        await worker.stop()
        await running
        return took


CONTENDERS = {"peer": peer, "peer, no waits": peer_no_waits, "jobwire": jobwire}
