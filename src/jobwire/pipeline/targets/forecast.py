"""Computes when a queue is empty at its present rates, and how many jobs must run at a time for its target.

The present rates are those of the last six hours. By Little's law the jobs that run at a time are, on average, the runs
that start in a second times the seconds that a run takes. That is the work there is; with exactly so many slots the
queue would grow without end as soon as runs bunch up. The slots for a waiting time come from Erlang's formula, which
takes jobs to arrive independently of each other and run times to be spread exponentially. Bursts need more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobwire.pipeline.targets.backlog import Backlog
from jobwire.pipeline.targets.hours import HOUR, Hours, QueueKey, mean, start_of_hour
from jobwire.pipeline.targets.target import WAITING_LONGER, Target

RECENT = timedelta(hours=6)
_BUSY_TIME = timedelta(days=7)
"""The busiest hour of this time is the one that slots are computed for."""
SPARE = 0.8
"""The share of the time in which slots may be busy, if there is no target for the waiting time."""
_CHANCE = 1.02
_MOST_SLOTS = 100_000


@dataclass(frozen=True)
class Forecast:
    """The near future of a queue, if nothing changes."""

    key: QueueKey
    backlog: Backlog | None
    added_per_hour: float
    ended_per_hour: float
    empty_in: timedelta | None
    """The time until nothing is ready any more. None if the queue is empty now, or is not emptied at these rates."""
    run_ms: float | None
    """The mean time of a run."""
    busiest_per_hour: float
    """Runs that started in the busiest hour of the last week."""
    load: float | None
    """Jobs that run at a time in that hour, by Little's law."""
    slots: int | None
    """Slots that the target needs in that hour."""
    target: Target | None

    @property
    def behind(self) -> bool:
        """Returns whether more jobs are ready than end in a minute. Fewer are on their way to a worker."""
        return self.backlog is not None and self.backlog.ready > self.ended_per_hour / 60

    @property
    def grows(self) -> bool:
        """Returns whether the queue is behind and more jobs are added than end, by more than chance."""
        return self.behind and self.added_per_hour > self.ended_per_hour * _CHANCE


def forecast(
    hours: Hours, backlog: Backlog | None, target: Target | None, until: datetime, observed_from: datetime | None = None
) -> Forecast:
    """Returns the forecast of a queue at the time `until`. The present rates are over the time that was observed.
    Whole hours are compared for the busiest one: an hour that has not passed yet, or of which the beginning was not
    observed, counts with the runs that it had. Until there is a whole one, its rate is over the time that was observed.
    """
    begin = max(until - RECENT, observed_from or hours.first)
    length = max((until - begin) / HOUR, 1 / 60)
    recent = hours.between(start_of_hour(begin), until)
    added, ended = (sum(getattr(hour, name) for hour in recent) / length for name in ("added", "ended"))
    ready = backlog.ready if backlog else 0
    empty = timedelta(hours=ready / (ended - added)) if ready and ended > added else None
    busy = {at: hour for at, hour in hours.hours.items() if until - _BUSY_TIME <= at < until}
    lengths = {at: _length(at, until, observed_from) for at in busy}
    some_whole = 1.0 in lengths.values()
    busiest = max((hour.started / (1.0 if some_whole else lengths[at]) for at, hour in busy.items()), default=0.0)
    run_ms = mean([bars for hour in busy.values() for bars in hour.runs])
    load = None if run_ms is None else busiest / 3_600_000 * run_ms
    slots = None if load is None or run_ms is None else slots_for(load, run_ms, target)
    return Forecast(hours.key, backlog, added, ended, empty, run_ms, busiest, load, slots, target)


def slots_for(load: float, run_ms: float, target: Target | None) -> int | None:
    """Returns the slots with which 95 % of jobs start within the target's wait, or that are busy for 80 % of the time
    if it has none; None beyond what a formula is good for.

    >>> slots_for(2.0, 500, None), slots_for(2.0, 500, Target("mail", timedelta(milliseconds=100)))
    (3, 5)
    """
    if load <= 0:
        return 1
    if target is None or target.wait_p95 is None:
        return max(1, math.ceil(load / SPARE))
    longest = target.wait_p95 / timedelta(milliseconds=run_ms)
    slots = math.floor(load) + 1
    blocked = 1.0
    for number in range(1, slots + 1):
        blocked = load * blocked / (number + load * blocked)
    while slots <= _MOST_SLOTS:
        waiting = blocked / (1 - load / slots * (1 - blocked))
        if waiting * math.exp(-(slots - load) * longest) <= WAITING_LONGER:
            return slots
        slots += 1
        blocked = load * blocked / (slots + load * blocked)
    return None


def _length(at: datetime, until: datetime, observed_from: datetime | None) -> float:
    """Returns the part of an hour that was observed."""
    begin = max(at, observed_from) if observed_from is not None else at
    return max((min(at + HOUR, until) - begin) / HOUR, 1 / 60)
