"""A worker whose handler runs in child processes, for tests that send signals: process_program.py HOW [SECONDS].

Prints "child PID" when the handler runs, and what became of the job when the worker has stopped.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
from typing import Any

from jobwire import Queue, State, Worker, connect

if os.environ.get("SLOW_START"):
    print("booting", os.getpid(), flush=True)
    time.sleep(float(os.environ["SLOW_START"]))


def handle(job: Any) -> str:
    print("child", os.getpid(), flush=True)
    match job.data["how"]:
        case "sleep":
            time.sleep(job.data["seconds"])
        case "busy loop":
            for _ in itertools.count():
                pass
        case "holding the GIL":
            return str(len(f"{7 ** (10**9)}"))
    return "finished"


async def main(how: str, seconds: float) -> None:
    async with connect("memory:here") as connection, Queue("work", connection) as queue:
        job = await queue.add({"how": how, "seconds": seconds})
        await Worker("work", handle, connection, executor="process", shutdown_timeout=60).run()
        left = await queue.get(job.id)
        assert left is not None
        print(left.state.value, left.result if left.state is State.COMPLETED else left.error, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 600.0))
