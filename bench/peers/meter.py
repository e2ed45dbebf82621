"""What all clients share: the order that they get, and the meter that their handlers call.

A run is timed from the start of the first job to the end of the last, so that the start of a worker does not count. The
process ends with the last job: what a library does to shut down does not count either.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Order:
    """One scenario for one client."""

    url: str
    operation: str
    jobs: int
    concurrency: int
    seconds: float


class Meter:
    """Counts jobs and prints what they took, as one line of JSON."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._lock = threading.Lock()
        self._began: tuple[float, float] | None = None
        self._done = 0
        self.waits: list[float] = []
        self.started = threading.Semaphore(0)
        self.started_async = asyncio.Semaphore(0)

    def run(self, sent: float) -> None:
        """Does the job of a handler that is a plain function."""
        self._begin(sent)
        self.started.release()
        if self._order.seconds:
            time.sleep(self._order.seconds)
        self._end()

    async def run_async(self, sent: float) -> None:
        """Does the job of a handler that is a coroutine function."""
        self._begin(sent)
        self.started_async.release()
        if self._order.seconds:
            await asyncio.sleep(self._order.seconds)
        self._end()

    def _begin(self, sent: float) -> None:
        if self._began is None:
            self._began = time.perf_counter(), time.process_time()
        if self._order.operation == "latency":
            self.waits.append(time.time() - sent)

    def _end(self) -> None:
        with self._lock:
            self._done += 1
            last = self._done == self._order.jobs
        if last and self._began is not None and self._order.operation == "work":
            finish({"seconds": time.perf_counter() - self._began[0], "cpu": time.process_time() - self._began[1]})


def finish(result: dict[str, Any]) -> None:
    """Prints the result and ends the process, with all of its threads."""
    print(json.dumps(result), flush=True)
    sys.stderr.flush()
    os._exit(0)


order = Order(**json.loads(sys.argv[2])) if len(sys.argv) > 2 else Order("", "", 0, 1, 0.0)
meter = Meter(order)
