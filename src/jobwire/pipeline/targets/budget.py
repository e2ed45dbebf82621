"""Error budgets and how fast they are spent.

A target allows a share of bad cases: of runs, 5 % that waited for longer than `wait_p95`; of jobs that ended, the
`failure_rate`. The budget is that share of all cases in the target's window. The burn rate of a shorter time is the
share of bad cases in it by the share that is allowed: at 1 the budget lasts exactly for the window. Figures are hourly:
the hour in which a time begins counts by the part of it that is within.

Alerts are raised as is usual for burn rates, scaled to the window: *fast* if 2 % of the budget went in one hour, or 5 %
in six hours while the last hour goes on like that; *slow* if 10 % went in three days while the last six hours go on
like that. Jobs that are ready and have waited for longer than the target count as bad runs of the present hour: a queue
without any worker has no runs to judge by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobwire.pipeline.targets.backlog import Backlog
from jobwire.pipeline.targets.hours import HOUR, Hour, Hours, QueueKey, durations
from jobwire.pipeline.targets.target import WAITING_LONGER, Target, Targets

WAIT, FAILURES = "wait_p95", "failure_rate"
BURN_TIMES = {"1h": HOUR, "6h": timedelta(hours=6), "3d": timedelta(days=3)}
_FEWEST = 3
"""Bad cases below which nothing is alerted: one failure of one job means little."""


@dataclass(frozen=True)
class Cases:
    """The runs or jobs that a target counts in some time, and the bad ones among them."""

    all: float
    bad: float

    @property
    def share(self) -> float:
        return self.bad / self.all if self.all else 0.0

    @classmethod
    def bad_ones(cls, number: float) -> Cases:
        return cls(number, number)


NONE = Cases(0.0, 0.0)


@dataclass(frozen=True)
class Budget:
    """One target of one queue at one time."""

    key: QueueKey
    measure: str
    target: Target
    allowed: float
    """The share of bad cases that the target allows."""
    cases: Cases
    """Those of the window."""
    burn: dict[str, float]
    """Burn rates by the length of time: 1h, 6h, 3d."""
    alert: str | None
    """`fast`, `slow`, or None."""
    observed: timedelta
    """The part of the window of which the lake has figures."""

    @property
    def limit(self) -> float:
        """Returns the target's own number: seconds of waiting, or a share of jobs."""
        wait = self.target.wait_p95
        return wait.total_seconds() if self.measure == WAIT and wait is not None else self.allowed

    @property
    def described(self) -> str:
        """Returns the target in a few words."""
        return f"p95 wait ≤ {self.limit:g} s" if self.measure == WAIT else f"failed ≤ {self.limit:.2%}"

    @property
    def left(self) -> float:
        """Returns the share of the budget that is left; below 0 if more was spent."""
        return 1.0 - self.cases.share / self.allowed

    @property
    def met(self) -> bool:
        return self.cases.share <= self.allowed


def budgets(
    queues: Sequence[Hours], backlogs: Mapping[QueueKey, Backlog], targets: Targets, until: datetime
) -> list[Budget]:
    """Returns the budgets of every queue with a target, at the time `until`."""
    found: list[Budget] = []
    for hours in queues:
        target = targets.of_queue(hours.key.queue)
        if target is None:
            continue
        if target.wait_p95 is not None:
            longest = target.wait_p95 / timedelta(milliseconds=1)
            backlog = backlogs.get(hours.key)
            overdue = Cases.bad_ones(0 if backlog is None else backlog.waiting_for(target.wait_p95))
            counted = {at: _waits(hour, longest) for at, hour in hours.hours.items()}
            found.append(_budget(hours, target, WAIT, WAITING_LONGER, until, counted, overdue))
        if target.failure_rate is not None:
            counted = {at: Cases(hour.ended, hour.failed) for at, hour in hours.hours.items()}
            found.append(_budget(hours, target, FAILURES, target.failure_rate, until, counted))
    return found


def _budget(  # noqa: PLR0917 the parts of one budget
    hours: Hours,
    target: Target,
    measure: str,
    allowed: float,
    until: datetime,
    counted: Mapping[datetime, Cases],
    now: Cases = NONE,
) -> Budget:
    def within(length: timedelta) -> Cases:
        begin = until - length
        shares = [
            (min((at + HOUR - begin) / HOUR, 1.0), one) for at, one in counted.items() if begin - HOUR < at < until
        ]
        return Cases(
            now.all + sum(share * one.all for share, one in shares),
            now.bad + sum(share * one.bad for share, one in shares),
        )

    recent = {name: within(length) for name, length in BURN_TIMES.items()}
    burn = {name: cases.share / allowed for name, cases in recent.items()}
    window = target.window / HOUR
    enough = {name for name, cases in recent.items() if cases.bad >= _FEWEST}
    hourly = "1h" in enough and burn["1h"] >= 0.02 * window
    six = 0.05 * window / 6
    sixfold = "6h" in enough and burn["6h"] >= six and burn["1h"] >= six
    three = 0.1 * window / 72
    slow = "3d" in enough and burn["3d"] >= three and burn["6h"] >= three
    observed = min(target.window, until - max(hours.first, until - target.window))
    alert = "fast" if hourly or sixfold else "slow" if slow else None
    return Budget(hours.key, measure, target, allowed, within(target.window), burn, alert, observed)


def _waits(hour: Hour, longest_ms: float) -> Cases:
    middles, counts = durations(hour.waits)
    return Cases(float(counts.sum()), float(counts[middles > longest_ms].sum()))
