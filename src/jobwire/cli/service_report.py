"""Reports a worker's life to the service manager: that it is ready, what it does, that it is alive, that it stops.

The signs of life come from a task in the worker's event loop. If a handler blocks the loop, there are none, and the
service manager restarts the service. A store that does not answer does not end the signs: running jobs go on, and the
worker reconnects by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator

from jobwire.cli.service_manager import READY, STOPPING, WATCHDOG, ServiceManager
from jobwire.counted import counted
from jobwire.worker import Worker

_LOOK_EVERY = 0.25
_STATUS_EVERY = 2.0


@contextlib.asynccontextmanager
async def reported(worker: Worker, manager: ServiceManager | None) -> AsyncGenerator[None]:
    """Reports the worker's life as long as the block lasts. Without a service manager does nothing."""
    if manager is None:
        yield
        return
    report = WorkerReport(worker, manager)
    task = asyncio.create_task(report.run())
    try:
        yield
    finally:
        task.cancel()
        report.stopping()
        manager.close()


class WorkerReport:
    """Sends the messages of one worker."""

    def __init__(self, worker: Worker, manager: ServiceManager) -> None:
        self._worker = worker
        self._manager = manager
        self._stopping = False
        self._shown = ""
        self._next_status = self._next_sign = 0.0

    async def run(self) -> None:
        ready = False
        while True:
            if not ready and self._worker.started:
                ready = True
                self._manager.send(READY)
            if not self._worker.claiming:
                self.stopping()
            self._at(time.monotonic())
            await asyncio.sleep(_LOOK_EVERY if self._manager.watchdog is None else self._pause(self._manager.watchdog))

    def stopping(self) -> None:
        if not self._stopping:
            self._stopping = True
            self._manager.send(STOPPING)

    def _pause(self, watchdog: float) -> float:
        return min(_LOOK_EVERY, watchdog / 4)

    def _at(self, now: float) -> None:
        watchdog = self._manager.watchdog
        if watchdog is not None and now >= self._next_sign:
            self._manager.send(WATCHDOG)
            self._next_sign = now + watchdog / 2 - self._pause(watchdog)
        if now >= self._next_status and (sentence := _sentence(self._worker)) != self._shown:
            self._manager.status(sentence)
            self._shown, self._next_status = sentence, now + _STATUS_EVERY


def _sentence(worker: Worker) -> str:
    done = worker.stats
    work = f"{counted(worker.busy, 'job')} running, {done.completed} completed, {done.failed} failed"
    if not worker.claiming:
        return f"stopping: {work}"
    if not worker.running:
        return "connecting to the store"
    if not worker.connected:
        return f"the store does not answer: {work}"
    return f"paused: {work}" if worker.paused else work
