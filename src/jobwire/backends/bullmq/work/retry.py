"""What becomes of a BullMQ job whose handler failed.

It runs again while it has attempts left, after the wait that its backoff says: at once without one. An attempt is
charged for every run that ends, so a job with 3 attempts runs three times. A stored delay below zero ends the job, as
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
    """Next attempt or failure; the worker's max_backoff limits what a job's own backoff asks for."""
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
    """Any type but these two is the name of a strategy, which the worker that runs the job supplies."""
    if rule.kind in ("fixed", "exponential"):
        return Curve(rule.kind, rule.delay / 1000, least=1 - rule.jitter)
    return Custom(rule.kind, settings.strategy_for(rule.kind))


def milliseconds(delay: float) -> int:
    """Whole milliseconds, cut off as in BullMQ. The small addition undoes what the way through seconds lost."""
    return math.floor(delay * 1000 + 1e-3)
