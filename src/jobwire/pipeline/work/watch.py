"""Watches a fleet: the reports of its workers and the jobs that the queue still holds."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence

from jobwire.errors import JobwireError
from jobwire.pipeline.work.result import WORKING, FleetStatus, WorkerReport
from jobwire.pipeline.work.status_files import StatusFiles

Watch = Callable[[FleetStatus], None]
_LATELY = 10.0
"""Seconds over which the rate is measured."""


class Watcher:
    """Makes a status of the fleet at each look."""

    def __init__(self, files: StatusFiles, tasks: int, left: Callable[[], int | None]) -> None:
        self._files = files
        self._tasks = tasks
        self._left = left
        self._began = time.monotonic()
        self._runs: deque[tuple[float, int]] = deque([(0.0, 0)])

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def look(self, *, stopping: bool) -> FleetStatus:
        """Returns the fleet as it is now. A lake that can't be read now shows the fleet without its workers."""
        reports: Sequence[WorkerReport] = ()
        with contextlib.suppress(JobwireError, OSError):
            reports = self._files.reports()
        return FleetStatus(
            seconds=self.seconds,
            tasks=self._tasks,
            working=sum(one.outcome == WORKING for one in reports),
            completed=sum(one.completed for one in reports),
            failed=sum(one.failed for one in reports),
            retried=sum(one.retried for one in reports),
            left=self._left(),
            rate=self._rate(sum(one.runs for one in reports)),
            stopping=stopping,
        )

    def _rate(self, runs: int) -> float:
        now = self.seconds
        self._runs.append((now, runs))
        while len(self._runs) > 2 and now - self._runs[1][0] >= _LATELY:
            self._runs.popleft()
        began, before = self._runs[0]
        return max(0.0, (runs - before) / (now - began)) if now > began else 0.0
