"""Reports handlers that block the event loop.

A coroutine function that calls blocking code stops everything in its loop: other jobs, claims, results. The symptoms
look like an outage of the store, so the log names the cause. A timer in the loop records the time four times a second,
and a thread checks this time. If it is more than a second ago, the thread finds out whose code runs and where it is: of
a handler or a task that it has made, of an observer, of a backoff strategy, or of the program around the worker.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from jobwire.boundary import Claim
from jobwire.journal import Journal, fields_of

_BEAT = 0.25
_BLOCKED = 1.0
_REPORT_EVERY = 60.0
_PACKAGE = Path(__file__).parents[1]
_OWN_CODE = f"{_PACKAGE}/"
_CALLERS = {
    f"{_PACKAGE}/worker/observers.py": "an observer",
    f"{_PACKAGE}/retry.py": "a backoff strategy",
}
_FRAMES = 4
_FOR_HANDLERS = "Make the handler a plain def, or call blocking code with asyncio.to_thread"
_FOR_CALLED = "It is called in the event loop and must return at once"
_FOR_OTHERS = "Call blocking code with asyncio.to_thread"


class LoopWatch:
    """Watches the event loop that it is started in. `claim_of` returns the claim whose handler runs in a task."""

    def __init__(self, journal: Journal, claim_of: Callable[[asyncio.Task[Any]], Claim | None]) -> None:
        self._journal = journal
        self._claim_of = claim_of
        self._beat_at = time.monotonic()
        self._reported_beat: float | None = None
        self._reported: dict[tuple[str, ...], float] = {}
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
            frames = _frames(sys._current_frames().get(self._loop_thread))  # pyright: ignore[reportPrivateUsage] documented, and the only way
            if not frames or not self._due(tuple(frame.function for frame in frames)):
                continue  # the loop waits for events, so the whole process was held up and not only the loop
            self._reported_beat = beat
            self._report(late, frames)

    def _report(self, late: float, frames: list[_Frame]) -> None:
        task = asyncio.current_task(self._loop)
        claim = None if task is None else self._claim_of(task)
        users = [frame for frame in frames if not frame.is_own]
        caller = next((_CALLERS[frame.file] for frame in reversed(frames) if frame.file in _CALLERS), None)
        if claim is not None:
            whose, advice = f"the handler of job {claim.job.id}", _FOR_HANDLERS
        elif users and caller is not None:
            whose, advice = caller, _FOR_CALLED
        elif users:
            whose, advice = "code outside of jobwire's handlers", _FOR_OTHERS
        else:
            whose, advice = "jobwire itself", "Large data or results may be the cause"
        self._journal.warning(
            "the event loop has been blocked for %.1f s by %s, at %s; other jobs and calls to the store wait. %s",
            late, whose, " > ".join(map(str, (users or frames)[-_FRAMES:])), advice,
            extra={} if claim is None else fields_of(claim),
        )  # fmt: skip

    def _due(self, functions: tuple[str, ...]) -> bool:
        """Returns True if these functions were not reported within the last minute: they may block for every job."""
        now = time.monotonic()
        self._reported = {one: at for one, at in self._reported.items() if now - at < _REPORT_EVERY}
        return self._reported.setdefault(functions, now) == now


class _Frame(NamedTuple):
    name: str
    file: str
    line: int

    @property
    def function(self) -> str:
        return f"{self.name} ({self.file})"

    @property
    def is_own(self) -> bool:
        return self.file.startswith(_OWN_CODE)

    def __str__(self) -> str:
        return f"{self.name} ({self.file}:{self.line})"


def _frames(frame: FrameType | None) -> list[_Frame]:
    """Returns the functions that run in the loop's thread, outermost first, up to those of asyncio."""
    found: list[_Frame] = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(("/selectors.py", "/asyncio/base_events.py", "/asyncio/events.py")):
            break
        found.append(_Frame(code.co_name, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found[::-1]
