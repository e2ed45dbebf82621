"""Decides about the next attempt of a BullMQ job whose handler failed.

The job runs again while it has attempts left, after the delay of its backoff, or at once without one. An attempt is
charged for every run that ends, so a job with 3 attempts runs three times. A stored delay below zero fails the job, as
in BullMQ.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from jobwire.backends.bullmq.work.stored_options import StoredBackoff, StoredOptions
from jobwire.backoff import Curve
from jobwire.boundary import ConsumerSettings, Failed
from jobwire.retry import Custom, NextAttempt, next_attempt


def decide(
    failed: Failed,
    options: StoredOptions,
    settings: ConsumerSettings,
    rng: Callable[[], float] = random.random,
) -> NextAttempt:
    """Returns the next attempt, or the failure. The worker's max_backoff limits the job's own backoff."""
    decision = next_attempt(
        failed,
        failures=failed.claim.job.attempts_made + 1,
        attempts=options.attempts,
        backoff=None if options.backoff is None else _backoff(options.backoff, settings),
        longest=settings.max_backoff,
        rng=rng,
    )
    return decision._replace(delay=None) if decision.delay is not None and decision.delay < 0 else decision


def _backoff(rule: StoredBackoff, settings: ConsumerSettings) -> Curve | Custom:
    """Returns the rule. Any type but fixed and exponential is the name of one of the worker's strategies."""
    if rule.kind in ("fixed", "exponential"):
        return Curve(rule.kind, rule.delay / 1000, least=1 - rule.jitter)
    return Custom(rule.kind, settings.strategy_for(rule.kind))


def milliseconds(delay: float) -> int:
    """Returns whole milliseconds, rounded down as in BullMQ. The small addition corrects rounding errors of seconds."""
    return math.floor(delay * 1000 + 1e-3)
