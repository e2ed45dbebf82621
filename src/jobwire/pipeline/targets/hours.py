"""The hours of one queue: what was added and ended, how long runs waited and took. Read from gold without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobwire.pipeline.lake.sketches import GROWTH, Bars, read_sketch

HOUR = timedelta(hours=1)


def start_of_hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


class QueueKey(NamedTuple):
    store: str
    queue: str


@dataclass
class Hour:
    """One hour of a queue. `waits` and `runs` count durations by bucket, see lake/sketches.py."""

    added: float = 0.0
    started: float = 0.0
    completed: float = 0.0
    failed: float = 0.0
    waits: list[Bars] = field(default_factory=list[Bars])
    runs: list[Bars] = field(default_factory=list[Bars])

    @property
    def ended(self) -> float:
        return self.completed + self.failed


@dataclass(frozen=True)
class Hours:
    """The hours of one queue in which anything happened, in order."""

    key: QueueKey
    hours: Mapping[datetime, Hour]

    @property
    def first(self) -> datetime:
        return min(self.hours)

    def between(self, start: datetime, end: datetime) -> Sequence[Hour]:
        """Returns the hours that begin in [start, end)."""
        return [hour for at, hour in self.hours.items() if start <= at < end]


def hours_of(throughput: Any, latency: Any) -> list[Hours]:
    """Returns the hours of every queue, from frames of `throughput_hourly` and `latency_hourly`; all names together."""
    found: dict[QueueKey, dict[datetime, Hour]] = {}

    def hour(row: Any) -> Hour:
        return found.setdefault(QueueKey(row.store, row.queue), {}).setdefault(row.hour.to_pydatetime(), Hour())

    for row in throughput.itertuples():
        one = hour(row)
        one.added += row.added
        one.started += row.started
        one.completed += row.completed
        one.failed += row.failed
    for row in latency.itertuples():
        one = hour(row)
        for text, bars in ((row.wait_sketch, one.waits), (row.run_sketch, one.runs)):
            sketch = read_sketch(text) if isinstance(text, str) else None
            if sketch is not None:
                bars.append(sketch)
    return [Hours(key, dict(sorted(hours.items()))) for key, hours in sorted(found.items())]


def durations(bars: Sequence[Bars]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the durations in ms that buckets stand for, in order, and how many there were of each."""
    if not bars:
        return np.zeros(0), np.zeros(0)
    buckets = np.concatenate([bar.buckets for bar in bars])
    counts = np.bincount(buckets, weights=np.concatenate([bar.counts for bar in bars]))
    numbers = np.flatnonzero(counts)
    middles = np.where(numbers == 0, 0.0, 2 * GROWTH ** (numbers - 1.0) / (GROWTH + 1))
    return middles, counts[numbers].astype(np.float64)


def percentile(bars: Sequence[Bars], share: float) -> float | None:
    """Returns the duration in ms that this share of the runs did not exceed; None without runs."""
    middles, counts = durations(bars)
    if not len(counts):
        return None
    reached = counts.cumsum()
    return float(middles[int(np.argmax(reached >= np.ceil(reached[-1] * share)))])


def mean(bars: Sequence[Bars]) -> float | None:
    """Returns the mean duration in ms; None without runs."""
    middles, counts = durations(bars)
    return float((middles * counts).sum() / counts.sum()) if len(counts) else None
