"""Decides what follows a failed run: the next attempt after a wait, or the end.

A job fails for good if the failure is final or its attempts are used up. Otherwise it runs again: after the wait that
the failure asks for, else after the wait of the job's backoff, else at once. A worker's own strategy may also end the
job. It is the user's code, so neither the call nor its result is trusted: a strategy that raises, or that returns
something other than a duration, fails the job, and the job's error names the cause.

Each protocol builds the arguments of `next_attempt` from its native options. pg-boss decides in SQL, as its peer does.
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from jobwire.backoff import Backoff, Curve
from jobwire.boundary import Failed, Strategy
from jobwire.durations import LONGEST
from jobwire.errors import shown


class NextAttempt(NamedTuple):
    """The decision. `delay` is the seconds until the next attempt, or None if the job has failed. `reason` is the job's
    error. If a faulty strategy has ended the job, it includes that."""

    delay: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Custom:
    """A backoff that the worker computes. `strategy` is None if the worker has none of that name."""

    name: str
    strategy: Strategy | None


def next_attempt(
    failed: Failed,
    *,
    failures: int,
    attempts: int,
    backoff: Backoff | Curve | Custom | None,
    longest: float,
    rng: Callable[[], float] = random.random,
) -> NextAttempt:
    """Decides from a failure whether and when the job runs again.

    `failures` counts this one, `attempts` counts runs in all, and `longest` is the longest delay of any backoff, in
    seconds.
    """
    if failed.final or failures >= attempts:
        return NextAttempt(None, failed.error)
    if failed.delay is not None:
        return NextAttempt(max(0.0, failed.delay), failed.error)
    match backoff:
        case None:
            return NextAttempt(0.0, failed.error)
        case Backoff() | Curve():
            return NextAttempt(min(backoff.after(failures, rng), longest), failed.error)
        case Custom():
            return _by_strategy(failed, failures, backoff, longest)


def _by_strategy(failed: Failed, failures: int, backoff: Custom, longest: float) -> NextAttempt:
    if backoff.strategy is None:
        return _ended(failed, f"the worker has no backoff strategy for {backoff.name!r}")
    try:
        wait: Any = backoff.strategy(failures, failed.claim.job, failed.error)
    except BaseException as error:  # also SystemExit: it ends this job's attempts, not the worker
        return _ended(failed, f"the backoff strategy raised {shown(error)}")
    if wait is None:
        return NextAttempt(None, failed.error)
    try:
        if inspect.iscoroutine(wait):
            wait.close()  # it is not awaited, and Python would warn about that
        delay = _seconds(wait)
    except BaseException:  # an object of the user's own class may raise anything when it is read
        return _ended(failed, f"the backoff strategy returned {shown(wait)}, not seconds, a timedelta or None")
    return NextAttempt(None if delay < 0 else min(delay, longest), failed.error)


def _seconds(wait: Any) -> float:
    """Returns a strategy's answer as a number of Python's own. Raises ValueError for anything else."""
    if isinstance(wait, timedelta):
        return timedelta.total_seconds(wait)
    if isinstance(wait, bool) or not isinstance(wait, (int, float)):
        raise ValueError
    number = min(int.__index__(wait), int(LONGEST)) if isinstance(wait, int) else float.__float__(wait)
    if math.isnan(number):
        raise ValueError
    return float(max(number, -1))


def _ended(failed: Failed, why: str) -> NextAttempt:
    return NextAttempt(None, f"{failed.error} (not retried: {why})")
