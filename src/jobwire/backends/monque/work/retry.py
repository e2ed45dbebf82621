"""Decides what follows a failed run, by Monque's rules.

The wait after the n-th failure is 2^n × base, at most cap, changed at random by up to a quarter and limited by the cap
again. After `max_retries` failures the job has failed. These are settings of the instance that ran the job.
"""

from __future__ import annotations

from jobwire.backends.monque.worker_options import WorkerOptions
from jobwire.backoff import Curve
from jobwire.boundary import ConsumerSettings, Failed
from jobwire.retry import Custom, NextAttempt, next_attempt

_SPREAD = 0.25
_LONGEST_REASON = 64 * 1024


def native_curve(base: float, cap: float) -> Curve:
    """Returns Monque's own waits.

    >>> [native_curve(1, 86_400).after(n, rng=lambda: 0.5) for n in (1, 2, 3, 40)]
    [2.0, 4.0, 8.0, 86400.0]
    """
    return Curve("exponential", 2 * base, cap, 1 - _SPREAD, 1 + _SPREAD)


def decide(failed: Failed, failures: int, settings: ConsumerSettings, options: WorkerOptions) -> NextAttempt:
    """Returns the next attempt or the failure, with a reason that a document can hold. `failures` includes this one."""
    own = settings.strategy
    decision = next_attempt(
        failed,
        failures=failures,
        attempts=options.max_retries,
        backoff=Custom("", own) if own else native_curve(options.base_retry_interval, options.max_backoff_delay),
        longest=settings.max_backoff if own else options.max_backoff_delay,
    )
    reason = decision.reason
    if len(reason) > _LONGEST_REASON:
        reason = reason[:_LONGEST_REASON] + "…"
    return decision._replace(reason=reason.encode(errors="replace").decode())  # no document holds a lone surrogate
