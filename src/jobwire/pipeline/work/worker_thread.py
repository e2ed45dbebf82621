"""Runs the worker of a task in a thread with an event loop, beside the thread in which Spark waits for rows.

A task that takes the place of a lost one stays a little longer than the others: until no job of the queue is active, or
until leases of the lost worker must have expired and been recovered. Workers recover jobs only while they run, and the
others may have found the queue idle before those leases expired.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

from jobwire.errors import JobwireError
from jobwire.model import State
from jobwire.pipeline.work.result import FAILED, IDLE, STOPPED, TIME
from jobwire.worker import Worker

_LOOK_EVERY = 1.0


class WorkerThread:
    """One worker from its start to its end."""

    def __init__(self, worker: Worker, *, seconds: float | None, stay: float) -> None:
        """`seconds` is the time to work, or None: until the queue is idle. `stay` is how long to wait in an idle queue
        for the jobs of a lost worker."""
        self._worker = worker
        self._seconds = seconds
        self._stay = stay
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stops = 0
        self._time_up = False
        self.error: BaseException | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobwire-work", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Waits for the worker's end. Returns whether it has ended."""
        return self._ended.wait(seconds)

    def stop_as_often_as(self, stops: int) -> None:
        """Has the worker finish its running jobs and end, if it is to stop once. Twice: release them at once."""
        while self._stops < stops:
            self._stops += 1
            if self._loop is not None:
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._worker.interrupt)

    @property
    def outcome(self) -> str:
        if self.error is not None:
            return FAILED
        if self._stops:
            return STOPPED
        return TIME if self._time_up else IDLE

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self.error = error
        finally:
            self._ended.set()

    async def _work(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._stops:  # before the loop was there to be asked
            return
        if self._seconds is not None:
            await self._work_for(self._seconds)
        elif self._stay > 0:
            await self._work_until_recovered()
        else:
            await self._worker.run_until_idle(signals=False)

    async def _work_for(self, seconds: float) -> None:
        if seconds <= 0:
            self._time_up = True
            return

        def end() -> None:
            self._time_up = True
            self._worker.interrupt()

        timer = asyncio.get_running_loop().call_later(seconds, end)
        try:
            await self._worker.run(signals=False)
        finally:
            timer.cancel()

    async def _work_until_recovered(self) -> None:
        watching = asyncio.create_task(self._stop_when_done())
        try:
            await self._worker.run(signals=False)
        finally:
            watching.cancel()

    async def _stop_when_done(self) -> None:
        until = time.monotonic() + self._stay
        claimed = -1
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            counts = await self._counts()
            quiet = self._worker.busy == 0 and self._worker.stats.claimed == claimed
            claimed = self._worker.stats.claimed
            # Jobs that wait are not claimed if the queue is paused.
            if counts is not None and quiet and (sum(counts) == 0 or time.monotonic() > until):
                self._worker.interrupt()
                return

    async def _counts(self) -> tuple[int, int] | None:
        """Returns how many jobs wait and how many are active, or None if the store does not answer now."""
        if not self._worker.started:
            return None
        try:
            counts = await self._worker.connection.backend.counts(self._worker.queue)
        except (JobwireError, OSError):
            return None
        return counts.get(State.WAITING, 0), counts.get(State.ACTIVE, 0)
