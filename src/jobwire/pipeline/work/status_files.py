"""Small files in the lake by which a fleet and its driver see each other while Spark runs the tasks.

    workings/fleets/<run>/status/<worker>.json    the worker's report so far, every other second
    workings/fleets/<run>/stop.json               asks all workers to stop, or to stop at once

Spark itself can only kill a task. A worker that finds the stop file finishes its running jobs first, or releases them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.work.result import WorkerReport

_log = logging.getLogger("jobwire.pipeline")
_COMPLAIN_EVERY = 60.0


_FOLDER = "workings/fleets"


def remove_left_over(files: LakeFiles) -> None:
    """Removes what fleets that were killed have left, once the run log has their end."""
    for run in files.folders(_FOLDER):
        record = files.read(f"runs/{run}.json")
        if record is not None and record["ended_at"] is not None:
            files.remove(f"{_FOLDER}/{run}")


class StatusFiles:
    """The files of one run. On the side of a task, errors are logged and have no other effect: its jobs matter more."""

    def __init__(self, lake: str, run: str) -> None:
        self._lake = lake
        self.folder = f"{_FOLDER}/{run}"
        self._complained = 0.0

    @cached_property
    def _files(self) -> LakeFiles:
        return LakeFiles(self._lake)

    def report(self, report: WorkerReport) -> None:
        """Replaces the worker's report."""
        try:
            self._files.write(f"{self.folder}/status/{report.worker}.json", asdict(report))
        except (JobwireError, OSError) as error:
            self._complain(error)

    def stops(self) -> int:
        """Returns how often the fleet was asked to stop."""
        try:
            asked = self._files.read(f"{self.folder}/stop.json")
        except (JobwireError, OSError) as error:
            self._complain(error)
            return 0
        return 0 if asked is None else int(asked["stops"])

    def ask_to_stop(self, stops: int) -> None:
        """Asks all workers to stop. The second time: to release their jobs at once."""
        self._files.write(f"{self.folder}/stop.json", {"stops": stops})

    def reports(self) -> Sequence[WorkerReport]:
        """Returns the last report of each worker that has begun."""
        folder = f"{self.folder}/status"
        found = [self._files.read(f"{folder}/{name}") for name in self._files.files(folder)]
        return [WorkerReport(**each) for each in found if each is not None]

    def remove(self) -> None:
        self._files.remove(self.folder)

    def _complain(self, error: Exception) -> None:
        now = time.monotonic()
        if now - self._complained > _COMPLAIN_EVERY or not self._complained:
            self._complained = now
            _log.warning("the lake can't be reached from this task (%s); its worker goes on without progress", error)
