"""A worker in a process of its own, for tests that kill it: python pgboss_worker.py URL."""

from __future__ import annotations

import asyncio
import random
import sys

from jobwire import ActiveJob, Worker


async def handle(job: ActiveJob) -> int:
    """Half of the jobs write into a ledger in the transaction that completes them."""
    if job.data["n"] % 2:
        connection = await job.transaction()
        await connection.execute("INSERT INTO ledger (n) VALUES (%s)", [job.data["n"]])
    await asyncio.sleep(random.uniform(0, 0.01))
    return int(job.data["n"])


def main(url: str) -> None:
    asyncio.run(Worker("work", handle, url, concurrency=8, lease=1.0, recover_every=0.3, max_stalled=10_000).run())


if __name__ == "__main__":
    main(sys.argv[1])
