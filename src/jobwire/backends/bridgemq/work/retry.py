"""Decides about the next attempt of a job whose handler failed.

`retry.attempts` is how often it may run again, so 3 means four runs. The wait before the next run follows the job's
backoff, with n the number of earlier failures: fixed `delay`, linear `delay * (n + 1)`, exponential `delay * 2^n`, at
most `maxDelay`. `jitter` spreads it by a quarter to both sides, and the cap holds after that too. An error listed in
`skipOn` fails the job at once. One in `rerouteOn` removes the server from its target.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from jobwire.backends.bridgemq import codec
from jobwire.backoff import Curve
from jobwire.boundary import Failed
from jobwire.retry import next_attempt

_SPREAD = 0.25
_LARGEST = 1e15
"""Milliseconds above which a stored number is cut: it may have any number of digits."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The next attempt. `delay` is in ms. None means that there is no next run and the job is dead."""

    delay: int | None
    reroute: bool = False


def decide(
    failed: Failed,
    document: Mapping[str, Any],
    max_backoff: float,
    rng: Callable[[], float] = random.random,
) -> Decision:
    retry = codec.mapping(document.get("retry"))
    made = codec.attempts_made(document)
    name = error_name(failed)
    if _lists(retry.get("skipOn"), name):
        return Decision(None)
    found = next_attempt(
        failed,
        failures=made + 1,
        attempts=codec.retries(document) + 1,
        backoff=curve(codec.backoff_rule(document), max_backoff),
        longest=max_backoff,
        rng=rng,
    )
    if found.delay is None:
        return Decision(None)
    return Decision(math.floor(found.delay * 1000), _lists(retry.get("rerouteOn"), name))


def curve(rule: Mapping[str, Any], longest: float) -> Curve | None:
    """Returns the backoff as a curve, or None without a delay.

    >>> [curve({"type": "linear", "delay": 2000, "maxDelay": 5000}, 3600).after(n) for n in (1, 2, 3)]
    [2.0, 4.0, 5.0]
    """
    delay = _seconds(rule.get("delay"))
    if delay is None or delay <= 0:
        return None
    most = _seconds(rule.get("maxDelay"))
    cap = longest if most is None else min(longest, max(0.0, most))
    spread = _SPREAD if rule.get("jitter") is True else 0.0
    return Curve(str(rule.get("type")), delay, cap, 1 - spread, 1 + spread)


def _seconds(stored_ms: Any) -> float | None:
    if not isinstance(stored_ms, (int, float)) or isinstance(stored_ms, bool):
        return None
    return max(-_LARGEST, min(stored_ms, _LARGEST)) / 1000


def error_name(failed: Failed) -> str:
    """Returns the name of the error's class, `Error` for a failure without an exception."""
    return failed.kind or "Error"


def _lists(names: Any, name: str) -> bool:
    return isinstance(names, list) and name in cast(list[Any], names)
