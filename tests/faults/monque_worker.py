"""A Monque worker in a process of its own, whose clock may be wrong: python monque_worker.py URL SECONDS_AHEAD NAP."""

from __future__ import annotations

import asyncio
import sys
import time

from jobwire import ActiveJob, Worker
from jobwire.native import MonqueWorker

URL, AHEAD, NAP = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])


async def handle(job: ActiveJob) -> float:
    await asyncio.sleep(NAP)
    return time.time() - AHEAD


async def main() -> None:
    worker = Worker(
        "work", handle, URL, concurrency=5, lease=4.0, recover_every=0.2, max_stalled=0, shutdown_timeout=2.0,
        native=MonqueWorker(base_retry_interval=0.1),
    )  # fmt: skip
    await worker.run()


if __name__ == "__main__":
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + AHEAD
    time.time_ns = lambda: real_ns() + round(AHEAD * 1_000_000_000)
    asyncio.run(main())
