"""Reports handlers that block the event loop.

A coroutine function that calls blocking code stops everything in its loop: other jobs, claims, results. The symptoms
look like an outage of the store, so the log names the cause. A timer in the loop records the time four times a second,
and a thread checks this time. If it is more than a second ago, the thread finds out which handler runs and where it is.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from jobwire.boundary import Claim
from jobwire.journal import Journal

_BEAT = 0.25
_BLOCKED = 1.0
_REPORT_EVERY = 60.0
_OWN_CODE = str(Path(__file__).parent)
_FRAMES = 4


class LoopWatch:
    """Watches the event loop that it is started in. `claim_of` returns the claim whose handler runs in a task."""

    def __init__(self, journal: Journal, claim_of: Callable[[asyncio.Task[Any]], Claim | None]) -> None:
        self._journal = journal
        self._claim_of = claim_of
        self._beat_at = time.monotonic()
        self._reported_beat: float | None = None
        self._reported: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="jobwire-loop-watch", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._timer.cancel()

    def _beat(self) -> None:
        now = time.monotonic()
        if self._reported_beat == self._beat_at:
            self._journal.warning("the event loop is free again after %.1f s", now - self._beat_at)
        self._beat_at = now
        self._timer = self._loop.call_later(_BEAT, self._beat)

    def _watch(self) -> None:
        while not self._stop.wait(_BLOCKED / 2):
            beat = self._beat_at
            late = time.monotonic() - beat
            if late < _BLOCKED + _BEAT or self._reported_beat == beat:
                continue
            frames = _user_frames(sys._current_frames().get(self._loop_thread))  # pyright: ignore[reportPrivateUsage] documented, and the only way
            if not frames or not self._due(frames[0]):
                continue  # the loop waits for events, so the whole process was held up and not only the loop
            self._reported_beat = beat
            self._journal.warning(
                "the event loop has been blocked for %.1f s by %s, at %s; other jobs and calls to the store wait. "
                "Make the handler a plain def, or call blocking code with asyncio.to_thread",
                late, self._whose(), " > ".join(frames[-_FRAMES:]),
            )  # fmt: skip

    def _whose(self) -> str:
        task = asyncio.current_task(self._loop)
        claim = None if task is None else self._claim_of(task)
        return "code outside of jobwire's handlers" if claim is None else f"the handler of job {claim.job.id}"

    def _due(self, code: str) -> bool:
        """Returns True if this function was not reported within the last minute: it may block for every job."""
        now = time.monotonic()
        if now - self._reported.get(code, -_REPORT_EVERY) < _REPORT_EVERY:
            return False
        self._reported[code] = now
        return True


def _user_frames(frame: FrameType | None) -> list[str]:
    """Returns the functions that run in the loop's thread, outermost first, without those of asyncio and the worker."""
    found: list[str] = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(("/selectors.py", "/asyncio/base_events.py", "/asyncio/events.py")):
            break
        if not code.co_filename.startswith(_OWN_CODE):
            found.append(f"{code.co_name} ({code.co_filename}:{frame.f_lineno})")
        frame = frame.f_back
    return found[::-1]
