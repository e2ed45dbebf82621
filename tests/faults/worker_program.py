"""A worker in a process of its own, for tests that kill it: python worker_program.py URL CONCURRENCY."""

from __future__ import annotations

import asyncio
import random
import sys

from jobwire import ActiveJob, Worker


async def handle(job: ActiveJob) -> int:
    await asyncio.sleep(random.uniform(0, 0.02))
    return int(job.data)


def main(url: str, concurrency: str) -> None:
    worker = Worker(
        "work", handle, url, concurrency=int(concurrency), lease=1.0, recover_every=0.3, max_stalled=1000
    )  # fmt: skip
    asyncio.run(worker.run())


if __name__ == "__main__":
    main(*sys.argv[1:])
