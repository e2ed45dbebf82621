"""Finds what changed: the last seven days against the seven before, by a test that a quiet week passes.

Each of the last seven days is compared with the same day of the week before, so that weekends don't count as changes.
The logarithms of the seven ratios must all point the same way (a series without a change does so once in 64 weeks),
their median must be larger than three times their median distance from it, and the change must be at least a quarter.
The last two keep out what is too small to act on and what is within the usual spread. A day of few cases is left out,
and a measure with fewer than six pairs of days is not compared. A number of jobs is compared if one of the two days has
enough: a queue in which no job ends any more has changed most. Days before the queue's first hour, and those after the
last reading of its store, are not days without jobs: they are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from jobwire.pipeline.targets.hours import Hour, Hours, QueueKey, percentile, start_of_hour

DAY = timedelta(days=1)
WEEK = 7
_FEWEST_PAIRS = 6
_FEWEST_CASES = 20
"""Jobs or runs of a day below which its figures are chance."""
_FEWEST_FAILURES = 5
_SMALLEST = math.log(1.25)
_SPREADS = 3.0
_NO_JOB = 0.5
"""Stands for no job in a ratio."""
_Day = Sequence[Hour]
_Pair = tuple[float, float]
"""A value of this week's day, and of last week's."""


@dataclass(frozen=True)
class Change:
    """A measure of a queue whose level is another one than a week before."""

    key: QueueKey
    measure: str
    """`jobs`, `failure rate`, `wait p95` or `run p95`."""
    before: float
    """The median of the days of the week before: jobs, a share, or milliseconds."""
    now: float

    @property
    def factor(self) -> float:
        return self.now / self.before if self.before else math.inf


def changes(queues: Sequence[Hours], until: datetime, read_at: Mapping[str, datetime] | None = None) -> list[Change]:
    """Returns what changed in the week before `until`, the largest change first. `read_at` has the last reading of each
    store, if that was earlier."""
    found: list[Change] = []
    for hours in queues:
        read = (read_at or {}).get(hours.key.store, until)
        begins = [until - DAY * (number + 1) for number in range(WEEK)]
        observed = [begin for begin in begins if begin < read and begin - WEEK * DAY >= start_of_hour(hours.first)]
        days = [tuple(hours.between(begin, begin + DAY) for begin in (at, at - WEEK * DAY)) for at in observed]
        for measure, value in _MEASURES.items():
            both = [value(now, before) for now, before in days]
            pairs = [pair for pair in both if pair is not None]
            if changed(pairs):
                levels = [median(values) for values in zip(*pairs, strict=True)]
                found.append(Change(hours.key, measure, before=levels[1], now=levels[0]))
    return sorted(found, key=lambda one: -abs(math.log(max(one.factor, 1e-9))))


def changed(pairs: Sequence[tuple[float, float]]) -> bool:
    """Returns whether the first values of the pairs are on another level than the second ones."""
    ratios = [math.log((now or _NO_JOB) / (before or _NO_JOB)) for now, before in pairs]
    if len(ratios) < _FEWEST_PAIRS:
        return False
    if not (all(ratio > 0 for ratio in ratios) or all(ratio < 0 for ratio in ratios)):
        return False
    level = median(ratios)
    spread = median(abs(ratio - level) for ratio in ratios)
    return abs(level) >= _SMALLEST and abs(level) > _SPREADS * spread


def _ended(day: _Day) -> float:
    return sum(hour.ended for hour in day)


def _jobs(now: _Day, before: _Day) -> _Pair | None:
    pair = _ended(now), _ended(before)
    return pair if max(pair) >= _FEWEST_CASES else None


def _failure_rate(now: _Day, before: _Day) -> _Pair | None:
    """Returns the shares of failed jobs. Two days with hardly a failure are not compared: their shares are chance."""
    failed = [sum(hour.failed for hour in day) for day in (now, before)]
    if max(failed) < _FEWEST_FAILURES or min(_ended(now), _ended(before)) < _FEWEST_CASES:
        return None
    # Half a failure more keeps a day without any comparable with one that had some.
    shares = [(bad + 0.5) / (_ended(day) + 1) for bad, day in zip(failed, (now, before), strict=True)]
    return shares[0], shares[1]


def _p95(kind: str) -> Callable[[_Day, _Day], _Pair | None]:
    def of_day(day: _Day) -> float | None:
        bars = [bar for hour in day for bar in getattr(hour, kind)]
        if sum(float(bar.counts.sum()) for bar in bars) < _FEWEST_CASES:
            return None
        level = percentile(bars, 0.95)
        return None if level is None else max(level, 1.0)

    def of_days(now: _Day, before: _Day) -> _Pair | None:
        one, other = of_day(now), of_day(before)
        return None if one is None or other is None else (one, other)

    return of_days


_MEASURES: dict[str, Callable[[_Day, _Day], _Pair | None]] = {
    "jobs": _jobs,
    "failure rate": _failure_rate,
    "wait p95": _p95("waits"),
    "run p95": _p95("runs"),
}
