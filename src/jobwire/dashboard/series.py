"""The last hour of one queue, as a few numbers for each half minute.

Rates come from changes of counts between two looks, as in `jobwire top`. A job that is deleted at its end changes no
count of finished jobs, so it is not seen as finished. A store that does not count all jobs gives the turnover instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobwire.boundary import Turnover
from jobwire.model import State

BIN = 30.0
BINS = 120


@dataclass(slots=True)
class Bin:
    """Half a minute: jobs that waited at its end, and those added, completed and failed in it."""

    number: int
    waiting: int = 0
    added: int = 0
    completed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Rates:
    """Jobs per minute over the last minutes. `failed` is part of `finished`."""

    added: float
    finished: float
    failed: float

    @property
    def failure_share(self) -> float | None:
        """The part of finished jobs that failed, or None if none finished."""
        return self.failed / self.finished if self.finished else None


def minutes_of(bins: Sequence[Bin]) -> float:
    """Returns the minutes that the bins span."""
    return (bins[-1].number - bins[0].number + 1) * BIN / 60 if bins else 0.0


class Series:
    """The samples of one queue."""

    def __init__(self) -> None:
        self.bins: deque[Bin] = deque(maxlen=BINS)
        self._before: Mapping[State, int] | None = None
        self._began: float | None = None

    def add(self, at: float, counts: Mapping[State, int], turnover: Turnover | None = None) -> bool:
        """Adds the counts that were read at a time in seconds, and the turnover since then if it is known. Returns True
        if the counts differ from those before."""
        number = int(at // BIN)
        if not self.bins or self.bins[-1].number != number:
            self.bins.append(Bin(number))
        if self._began is None:
            self._began = at
        now, before = self.bins[-1], self._before
        now.waiting = counts.get(State.WAITING, 0)
        if turnover is not None:
            now.added += turnover.added
            now.completed += turnover.completed
            now.failed += turnover.failed
        elif before is not None and before != counts:
            change = {state: counts[state] - before.get(state, 0) for state in counts}
            now.completed += max(0, change.get(State.COMPLETED, 0))
            now.failed += max(0, change.get(State.FAILED, 0))
            now.added += max(0, sum(change.values()))
        self._before = counts
        return before != counts

    def rates(self, at: float, over: float = 120.0) -> Rates | None:
        """Returns the rates of the last `over` seconds, or of the shorter time since the first look. None if that is
        under three seconds."""
        if self._began is None or at - self._began < 3:
            return None
        first = int((at - over) // BIN) + 1
        seen = [one for one in self.bins if one.number >= first]
        minutes = (at - max(self._began, first * BIN)) / 60
        if minutes <= 0:
            return None
        failed = sum(one.failed for one in seen)
        finished = failed + sum(one.completed for one in seen)
        return Rates(sum(one.added for one in seen) / minutes, finished / minutes, failed / minutes)

    def last_hour(self, at: float) -> list[Bin]:
        """Returns a bin for each half minute of the last hour in which the queue was looked at, oldest first."""
        first = int(at // BIN) - BINS
        return [one for one in self.bins if one.number > first]
