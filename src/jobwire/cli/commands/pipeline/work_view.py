"""Shows a fleet while it works: in a terminal one line that is drawn again, elsewhere a line now and then."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jobwire.counted import counted

if TYPE_CHECKING:
    from jobwire.pipeline.spark.progress import Progress
    from jobwire.pipeline.work import FleetStatus

_LINE_EVERY = 10.0


class WorkView:
    """Called with each status of the fleet."""

    def __init__(self, progress: Progress, *, live: bool) -> None:
        self._progress = progress
        self._every = 0.0 if live and sys.stderr.isatty() else _LINE_EVERY
        self._next = 0.0

    def __call__(self, status: FleetStatus) -> None:
        if status.seconds >= self._next:
            self._next = status.seconds + self._every
            self._progress(words(status), 0, None)


def words(status: FleetStatus) -> str:
    """Returns the status in one line."""
    doing = "stopping" if status.stopping else "working"
    of = f"{status.working:,} of {counted(status.tasks, 'worker')}"
    left = "" if status.left is None else f", {status.left:,} left"
    retried = f", {status.retried:,} to be tried again" if status.retried else ""
    done = f"{status.completed:,} completed, {status.failed:,} failed{retried}{left}"
    return f"{doing} ({of}): {status.rate:,.0f} runs/s, {done}"
