"""A handler that returns its job's data, and a worker with it in a process of its own, for tests that signal it:
`python echo_worker.py URL CONCURRENCY`."""

from __future__ import annotations

import asyncio
import random
import sys
from typing import Any

from jobwire import ActiveJob, Worker


async def echo(job: Any) -> Any:
    return job.data


async def start_worker(url: str, concurrency: int) -> asyncio.subprocess.Process:
    """Starts a worker of the queue `work`."""
    return await asyncio.create_subprocess_exec(sys.executable, __file__, url, str(concurrency))


async def _handle(job: ActiveJob) -> Any:
    await asyncio.sleep(random.uniform(0, 0.02))
    return job.data


if __name__ == "__main__":
    worker = Worker(
        "work", _handle, sys.argv[1], concurrency=int(sys.argv[2]), lease=1.0, recover_every=0.3, max_stalled=1000
    )
    asyncio.run(worker.run())
