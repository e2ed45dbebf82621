"""Ends runs that take too long.

The runs of a queue nearly always have the same timeout, so they end in the order in which they began, and one timer of
the event loop is enough for all of them: it waits for the first. A timer for each run would take 2 µs of every job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

Run = TypeVar("Run")


class Timeouts(Generic[Run]):
    """Calls `on_timeout` with a run and its timeout when it has not ended within that many seconds."""

    def __init__(self, on_timeout: Callable[[Run, float], None]) -> None:
        self._on_timeout = on_timeout
        self._due: dict[float, dict[Run, float]] = {}
        """For each timeout its runs, in the order in which they began, and when they are due in the loop's time."""
        self._timers: dict[float, asyncio.TimerHandle] = {}

    def begin(self, run: Run, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + timeout
        runs = self._due.get(timeout)
        if runs is None:
            self._due[timeout] = {run: due}
            self._timers[timeout] = loop.call_at(due, self._look, timeout)
        else:
            runs[run] = due

    def end(self, run: Run, timeout: float) -> None:
        """Forgets a run. Does nothing if it is not known, or has been timed out."""
        runs = self._due.get(timeout)
        if runs is None:
            return
        runs.pop(run, None)
        if not runs:
            del self._due[timeout]
            self._timers.pop(timeout).cancel()

    def _look(self, timeout: float) -> None:
        """Times out the runs that are due, and waits for the first of the others."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        runs = self._due.pop(timeout)
        late = [run for run, due in runs.items() if due <= now]
        left = {run: due for run, due in runs.items() if due > now}
        del self._timers[timeout]
        if left:
            self._due[timeout] = left
            self._timers[timeout] = loop.call_at(next(iter(left.values())), self._look, timeout)
        for run in late:
            self._on_timeout(run, timeout)
