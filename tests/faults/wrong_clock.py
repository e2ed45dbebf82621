"""A process whose clock is wrong: python wrong_clock.py SECONDS URL, as a worker of the queue `work`. With DELAY as a
third argument it is a producer of one job that is due after so many seconds; it prints the right time and the id."""

from __future__ import annotations

import asyncio
import sys
import time

_right, _right_ns = time.time, time.time_ns
_ahead = float(sys.argv[1])
time.time = lambda: _right() + _ahead
time.time_ns = lambda: _right_ns() + int(_ahead * 1e9)

from jobwire import ActiveJob, Queue, Worker  # noqa: E402 - the clock is wrong before anything looks at it


async def handle(job: ActiveJob) -> float:
    """The right time at which it ran; a job with data runs for so many seconds."""
    began = _right()
    await asyncio.sleep(float(job.data or 0))
    return began


async def produce(url: str, delay: float) -> None:
    async with Queue("work", url) as queue:
        began = _right()
        print(began, (await queue.add(None, delay=delay)).id, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        asyncio.run(produce(sys.argv[2], float(sys.argv[3])))
    else:
        asyncio.run(Worker("work", handle, sys.argv[2], lease=4.0, recover_every=0.3, concurrency=5).run())
