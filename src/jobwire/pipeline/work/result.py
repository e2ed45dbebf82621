"""The numbers of a fleet: of one worker, of all of them while they work, and of all of them in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from jobwire.worker import Stats

WORKING, IDLE, TIME, STOPPED, FAILED, LOST = "working", "idle", "time", "stopped", "failed", "lost"
"""Outcomes of a worker: it found no job, its time was up, it was asked to stop, an error ended it, or it never reported
its end, because its process or its machine died."""

_COUNTED = ("claimed", "completed", "failed", "retried", "released", "snoozed", "parked", "lost", "recovered")


@dataclass(frozen=True, kw_only=True)
class WorkerReport:
    """One worker of a fleet: an attempt of a Spark task. Its counts are those of `jobwire.worker.Stats`."""

    task: int
    task_attempt: int
    worker: str
    host: str
    started_at: str
    """ISO 8601, as all times here."""
    ended_at: str | None = None
    outcome: str = WORKING
    error: str | None = None
    claimed: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    released: int = 0
    snoozed: int = 0
    parked: int = 0
    lost: int = 0
    recovered: int = 0
    busy_ms: int = 0
    """The time that handlers ran, all runs added up."""
    failures: Mapping[str, int] = field(default_factory=dict[str, int])
    """Failed runs by the class of their error."""

    @property
    def runs(self) -> int:
        return self.completed + self.failed + self.retried


def counts_of(stats: Stats) -> dict[str, int]:
    """Returns the counts of a worker that a report has."""
    return {name: getattr(stats, name) for name in _COUNTED}


@dataclass(frozen=True, kw_only=True)
class FleetStatus:
    """A fleet while it works."""

    seconds: float
    tasks: int
    working: int
    """Workers that have begun and not ended."""
    completed: int
    failed: int
    """Jobs that failed for good."""
    retried: int
    """Failed runs after which another attempt follows."""
    left: int | None
    """Jobs that wait or run. None: the store did not answer."""
    rate: float
    """Runs per second, lately."""
    stopping: bool = False

    @property
    def runs(self) -> int:
        return self.completed + self.failed + self.retried


@dataclass(frozen=True, kw_only=True)
class WorkResult:
    """The result of a fleet. The counts are those of all workers, as far as they are known: a worker that was lost may
    have settled some more jobs after its last report."""

    run: str
    store: str
    queue: str
    tasks: int
    seconds: float
    stopped: bool
    left: int | None
    """Jobs that wait or run now. None: the store did not answer."""
    workers: Sequence[WorkerReport] = ()

    @property
    def completed(self) -> int:
        return sum(one.completed for one in self.workers)

    @property
    def failed(self) -> int:
        return sum(one.failed for one in self.workers)

    @property
    def retried(self) -> int:
        return sum(one.retried for one in self.workers)

    @property
    def rate(self) -> float:
        """Runs per second from the first worker's start to the last one's end, without the time that Spark took."""
        runs = self.completed + self.failed + self.retried
        starts = [datetime.fromisoformat(one.started_at) for one in self.workers]
        ends = [datetime.fromisoformat(one.ended_at) for one in self.workers if one.ended_at is not None]
        return runs / max((max(ends) - min(starts)).total_seconds(), 1e-3) if starts and ends else 0.0

    @property
    def lost_workers(self) -> int:
        return sum(one.outcome == LOST for one in self.workers)

    @property
    def failures(self) -> dict[str, int]:
        """Failed runs by the class of their error, the most frequent first."""
        total: Counter[str] = Counter()
        for one in self.workers:
            total.update(one.failures)
        return dict(total.most_common())

    @property
    def errors(self) -> dict[str, int]:
        """The errors that ended workers or kept them from starting, with the number of workers."""
        return dict(Counter(one.error for one in self.workers if one.error is not None))

    @property
    def good(self) -> bool:
        return not self.errors

    def as_dict(self) -> dict[str, Any]:
        names = ("completed", "failed", "retried", "rate", "lost_workers", "failures", "errors", "good")
        return {**asdict(self), **{name: getattr(self, name) for name in names}}


def nothing_to_do(run: str, store: str, queue: str, tasks: int) -> WorkResult:
    """Returns the result for a queue without jobs."""
    return WorkResult(run=run, store=store, queue=queue, tasks=tasks, seconds=0.0, stopped=False, left=0)
