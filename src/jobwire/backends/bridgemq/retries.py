"""What becomes of a job whose handler failed.

`retry.attempts` is how often it may run again, so 3 means four runs. The wait before the next run follows the job's
backoff, with n the number of earlier failures: fixed `delay`, linear `delay * (n + 1)`, exponential `delay * 2^n`, at
most `maxDelay`; `jitter` spreads it by a quarter to both sides, and the cap holds after that too. An error listed in
`skipOn` ends the job at once; one in `rerouteOn` frees it from the server it was meant for.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from jobwire.backend import Failed
from jobwire.backends.bridgemq import codec

_SPREAD = 0.25
_MANY, _DOUBLINGS = 2**31, 64
"""Failures beyond these numbers make no wait longer: it is beyond every cap."""


@dataclass(frozen=True, slots=True)
class Decision:
    """`delay` in ms until the next run; None: there is none, and the job is dead."""

    delay: int | None
    reroute: bool = False


def decide(
    failed: Failed,
    document: Mapping[str, Any],
    max_backoff: float,
    rng: Callable[[], float] = random.random,
) -> Decision:
    retry = codec.mapping(document.get("retry"))
    made = codec.integer(document.get("attempts"), 0)
    name = error_name(failed)
    if failed.final or made >= codec.retries(document) or _lists(retry.get("skipOn"), name):
        return Decision(None)
    reroute = _lists(retry.get("rerouteOn"), name)
    if failed.delay is not None:
        return Decision(max(0, round(failed.delay * 1000)), reroute)
    rule = retry.get("backoff") if "retry" in document else codec.DEFAULT_BACKOFF
    return Decision(wait_ms(codec.mapping(rule), made, max_backoff * 1000, rng), reroute)


def wait_ms(rule: Mapping[str, Any], earlier: int, longest: float, rng: Callable[[], float] = random.random) -> int:
    """
    >>> [wait_ms({"type": "exponential", "delay": 2000, "maxDelay": 5000}, n, 3_600_000) for n in range(3)]
    [2000, 4000, 5000]
    """
    delay, most = codec.number(rule.get("delay")), codec.number(rule.get("maxDelay"))
    if delay is None or delay <= 0:
        return 0
    cap = longest if most is None else min(longest, most)
    delay, earlier = min(delay, cap), min(max(earlier, 0), _MANY)
    match rule.get("type"):
        case "exponential":
            wait = math.ldexp(delay, min(earlier, _DOUBLINGS))
        case "linear":
            wait = delay * (earlier + 1)
        case _:
            wait = delay
    wait = min(wait, cap)
    if rule.get("jitter") is True:
        wait = min(wait * (1 - _SPREAD + 2 * _SPREAD * rng()), cap)
    return math.floor(wait)


def error_name(failed: Failed) -> str:
    """Returns the name of the error's class, `Error` for a failure without an exception."""
    return failed.kind or "Error"


def _lists(names: Any, name: str) -> bool:
    return isinstance(names, list) and name in cast(list[Any], names)
