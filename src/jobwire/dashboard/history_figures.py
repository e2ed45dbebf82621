"""The figures of a period that the page of the history shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


class StillReading(Exception):
    """The period is being read. The next question may get it."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Durations in seconds that 50, 95 and 99 % of runs do not exceed."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Point:
    """One hour or day."""

    at: datetime
    completed: int
    failed: int
    wait: Percentiles | None
    run: Percentiles | None

    @property
    def finished(self) -> int:
        return self.completed + self.failed


@dataclass(frozen=True, slots=True)
class QueueHistory:
    """One queue in the period."""

    store: str
    queue: str
    points: Sequence[Point]
    wait: Percentiles | None
    run: Percentiles | None

    @property
    def completed(self) -> int:
        return sum(point.completed for point in self.points)

    @property
    def failed(self) -> int:
        return sum(point.failed for point in self.points)

    @property
    def finished(self) -> int:
        return self.completed + self.failed

    @property
    def failure_share(self) -> float | None:
        return self.failed / self.finished if self.finished else None


@dataclass(frozen=True, slots=True)
class FailureClass:
    """The failed runs of one queue with one class of error."""

    store: str
    queue: str
    error_class: str
    failures: int
    jobs: int
    first: datetime | None
    last: datetime | None
    sample: str
    per_day: Sequence[int]


@dataclass(frozen=True, slots=True)
class Period:
    """The content of the lake for a period, from `begin` up to `end`."""

    begin: datetime
    end: datetime
    published: datetime | None
    by_hours: bool
    queues: Sequence[QueueHistory]
    """Those that finished most jobs, the busiest first."""
    left_out: int
    """Queues that are not among them."""
    totals: Sequence[Point]
    """All queues together, without percentiles."""
    failures: Sequence[FailureClass]
