"""A worker or a producer whose clock is wrong, in a process of its own:

python bullmq_wrong_clock.py SECONDS work URL
python bullmq_wrong_clock.py SECONDS add URL DELAY
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

_right, _wrong_by = time.time, float(sys.argv[1])
time.time = lambda: _right() + _wrong_by

from jobwire import Queue, Worker  # noqa: E402 nothing may see the right clock


async def handle(job: Any) -> Any:
    """Jobs take as long as their data says."""
    await asyncio.sleep(job.data)
    return job.data


async def main() -> None:
    what, url = sys.argv[2:4]
    if what == "work":
        await Worker("work", handle, url, concurrency=5, lease=4.0, recover_every=0.3).run()
    else:
        async with Queue("work", url) as queue:
            print((await queue.add(0, delay=float(sys.argv[4]))).id)


asyncio.run(main())
