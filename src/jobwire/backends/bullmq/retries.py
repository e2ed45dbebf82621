"""What becomes of a job whose handler failed.

It runs again while it has attempts left, after the wait that its backoff says: at once without one. An attempt is
charged for every run that ends, so a job with 3 attempts runs three times. A strategy may also say: no more.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from jobwire.backend import ConsumerSettings, Failed
from jobwire.backends.bullmq.stored_options import StoredOptions


@dataclass(frozen=True, slots=True)
class Decision:
    """`delay` in ms until the next run; None: there is none, and the job has failed."""

    delay: int | None
    reason: str


def decide(
    failed: Failed,
    options: StoredOptions,
    settings: ConsumerSettings,
    rng: Callable[[], float] = random.random,
) -> Decision:
    """Retry or failure, by BullMQ's rules; the worker's max_backoff limits what a job's own backoff asks for."""
    job = failed.claim.job
    failures = job.attempts_made + 1
    if failed.final or failures >= options.attempts:
        return Decision(None, failed.error)
    if failed.delay is not None:
        return Decision(max(0, round(failed.delay * 1000)), failed.error)
    rule = options.backoff
    if rule is None:
        return Decision(0, failed.error)
    longest = settings.max_backoff * 1000
    if rule.kind in ("fixed", "exponential"):
        if rule.delay < 0:
            return Decision(None, failed.error)
        wait = rule.delay if rule.kind == "fixed" else _doubled(rule.delay, failures - 1, longest)
        wait = math.floor(rng() * wait * rule.jitter + wait * (1 - rule.jitter)) if rule.jitter else round(wait)
        return Decision(int(min(wait, longest)), failed.error)
    return _by_strategy(failed, failures, rule.kind, settings)


def _by_strategy(failed: Failed, failures: int, name: str, settings: ConsumerSettings) -> Decision:
    strategy = settings.strategy_for(name)
    if strategy is None:
        return Decision(None, f"{failed.error} (not retried: the worker has no backoff strategy for {name!r})")
    try:
        wait = strategy(failures, failed.claim.job, failed.error)
    # The strategy is the user's code, and its failure must not leave the job without an outcome.
    except Exception as error:
        return Decision(None, f"{failed.error} (not retried: the backoff strategy raised {error!r})")
    if wait is None or wait < 0:
        return Decision(None, failed.error)
    return Decision(int(min(round(wait * 1000), settings.max_backoff * 1000)), failed.error)


def _doubled(delay: float, times: int, longest: float) -> float:
    try:
        return math.ldexp(delay, times)
    except OverflowError:
        return longest
