"""A worker in a process of its own that says when a job has begun: python half_open_worker.py URL SHUTDOWN_TIMEOUT."""

from __future__ import annotations

import asyncio
import sys

from jobwire import ActiveJob, Worker


async def handle(job: ActiveJob) -> None:
    print("begun", flush=True)
    await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(
        Worker("work", handle, sys.argv[1], concurrency=2, lease=2.0, shutdown_timeout=float(sys.argv[2])).run()
    )
