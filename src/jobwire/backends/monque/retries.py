"""What becomes of a job whose handler failed, by Monque's rules.

The n-th failure is followed by 2^n × base, at most cap, spread by a quarter to both sides and cut at the cap again.
After `max_retries` failures the job has failed. These are settings of the instance that ran the job.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from jobwire.backend import ConsumerSettings, Failed
from jobwire.backends.monque.settings import WorkerSettings

_JITTER = 0.25
LONGEST_REASON = 64 * 1024


@dataclass(frozen=True, slots=True)
class Decision:
    """`delay` in ms until the next run; None: there is none, and the job has failed."""

    delay: int | None
    reason: str


def native_delay(failures: int, base_ms: float, cap_ms: float, rng: Callable[[], float] = random.random) -> int:
    """
    >>> [native_delay(n, 1000, 86_400_000, rng=lambda: 0.5) for n in (1, 2, 3, 40)]
    [2000, 4000, 8000, 86400000]
    """
    try:
        wait = min(math.ldexp(base_ms, failures), cap_ms)
    except OverflowError:
        wait = cap_ms
    spread = round(wait * (1 + _JITTER * (2 * rng() - 1)))
    return int(min(max(0, spread), cap_ms))


def decide(failed: Failed, failures: int, settings: ConsumerSettings, ours: WorkerSettings) -> Decision:
    """Retry or failure. `failures` counts this one."""
    error = failed.error if len(failed.error) <= LONGEST_REASON else failed.error[:LONGEST_REASON] + "…"
    error = error.encode(errors="replace").decode()  # a lone surrogate, which no document can hold
    if failed.final or failures >= ours.max_retries:
        return Decision(None, error)
    longest = settings.max_backoff
    if failed.delay is not None:
        return Decision(round(max(0.0, failed.delay) * 1000), error)
    if settings.strategy is None:
        return Decision(native_delay(failures, ours.base_retry_interval * 1000, ours.max_backoff_delay * 1000), error)
    try:
        wait = settings.strategy(failures, failed.claim.job, failed.error)
    # The strategy is the user's code, and its failure must not leave the job without an outcome.
    except Exception as fault:
        return Decision(None, f"{error} (not retried: the backoff strategy raised {fault!r})")
    if wait is None or wait < 0:
        return Decision(None, error)
    return Decision(round(min(wait, longest) * 1000), error)
