"""A jobwire worker in a process of its own, to be killed: says `running <job id>` and never ends a job.

python hanging_worker.py <url> <queue> <lease seconds>
"""

from __future__ import annotations

import asyncio
import sys

from jobwire import ActiveJob, Worker


async def hang(job: ActiveJob) -> None:
    print("running", job.id, flush=True)
    await asyncio.Event().wait()


async def main(url: str, queue: str, lease: str) -> None:
    await Worker(queue, hang, url, lease=float(lease), recover_every=0.2).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
