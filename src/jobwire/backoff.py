"""Backoff: the delay between a failed run of a job and its next attempt.

>>> [Backoff.exponential(1.0, cap=5.0).after(failures) for failures in (1, 2, 3, 4)]
[1.0, 2.0, 4.0, 5.0]

The n-th failure (the first is 1) is followed by `delay` seconds (fixed), `delay * n` (linear) or `delay * 2^(n - 1)`
(exponential). Jitter then shortens the delay by a random part of up to `jitter`, as in BullMQ: a delay of 10 s with a
jitter of 0.2 becomes 8 s to 10 s. The cap is applied last.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from jobwire.durations import LONGEST
from jobwire.errors import InvalidOption
from jobwire.spelling import refuses_typos

_KINDS = ("fixed", "exponential", "linear", "custom")
# Peers compute these two themselves, so a worker's strategy is never called for them.
_TAKEN_NAMES = ("fixed", "exponential")

_RECONNECT_FIRST = 0.1
_RECONNECT_LONGEST = 30.0

_refuses_typos = refuses_typos("a Backoff")


@_refuses_typos
@dataclass(frozen=True, slots=True)
class Backoff:
    """A rule for the delay before the next attempt. Make one with `fixed`, `exponential`, `linear` or `custom`.

    Examples:
        >>> Backoff.linear(timedelta(minutes=1)).after(3)
        180.0
    """

    kind: str
    delay: float = 0.0
    jitter: float = 0.0
    cap: float | None = None
    name: str = ""
    """The name of a custom strategy. Empty for the other kinds."""

    def __init__(
        self,
        kind: str,
        delay: float | timedelta = 0.0,
        jitter: float = 0.0,
        cap: float | timedelta | None = None,
        name: str = "",
    ) -> None:
        if kind not in _KINDS:
            raise InvalidOption("backoff.kind", kind, f"must be one of {', '.join(_KINDS)}")
        longest = None if cap is None else _seconds("backoff.cap", cap)
        if longest == 0:
            raise InvalidOption("backoff.cap", cap, "must be more than 0 seconds")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "delay", _seconds("backoff.delay", delay))
        object.__setattr__(self, "jitter", _fraction("backoff.jitter", jitter))
        object.__setattr__(self, "cap", longest)
        object.__setattr__(self, "name", name)
        self._check_name()

    def _check_name(self) -> None:
        name: Any = self.name
        if self.kind != "custom":
            if name:
                raise InvalidOption("backoff.name", name, "is for custom strategies only")
            return
        if not isinstance(name, str) or not name:
            raise InvalidOption("backoff.name", name, "must be a non-empty string, the name of a strategy")
        if name in _TAKEN_NAMES:
            raise InvalidOption("backoff.name", name, f"is built in; use Backoff.{name}")
        if self.jitter or self.cap is not None:
            raise InvalidOption("backoff", name, "a custom strategy does its own jitter and cap")

    @classmethod
    @_refuses_typos
    def fixed(cls, delay: float | timedelta, jitter: float = 0.0, cap: float | timedelta | None = None) -> Backoff:
        """Returns a backoff with the same delay after every failure."""
        return cls("fixed", delay, jitter, cap)

    @classmethod
    @_refuses_typos
    def exponential(
        cls, delay: float | timedelta, jitter: float = 0.0, cap: float | timedelta | None = None
    ) -> Backoff:
        """Returns a backoff whose delay doubles with every failure."""
        return cls("exponential", delay, jitter, cap)

    @classmethod
    @_refuses_typos
    def linear(cls, delay: float | timedelta, jitter: float = 0.0, cap: float | timedelta | None = None) -> Backoff:
        """Returns a backoff whose delay grows by `delay` with every failure."""
        return cls("linear", delay, jitter, cap)

    @classmethod
    @_refuses_typos
    def custom(cls, name: str, delay: float | timedelta = 0.0) -> Backoff:
        """Returns a backoff that the worker computes by `Worker(backoff=callable)`. `delay` is stored with the job."""
        return cls("custom", delay, name=name)

    def after(self, failures: int, rng: Callable[[], float] = random.random) -> float:
        """Returns the seconds to wait after the n-th failure, counted from 1. `rng` returns numbers from 0 up to 1.

        Examples:
            >>> Backoff.fixed(10, jitter=0.2).after(1, rng=lambda: 0.5)
            9.0
        """
        if failures < 1:
            raise InvalidOption("failures", failures, "must be at least 1")
        if self.kind == "custom":
            raise InvalidOption("backoff", self.name, "is computed by the worker: give it Worker(backoff=...)")
        wait = Curve(self.kind, self.delay, least=1 - self.jitter).after(failures, rng)
        return wait if self.cap is None else min(wait, self.cap)


@dataclass(frozen=True, slots=True)
class Curve:
    """The growth of a delay with the number of failures, from the numbers that a protocol stores. They are not checked.

    The n-th failure is followed by `delay` seconds (fixed, and any unknown kind), `delay * n` (linear) or
    `delay * 2^(n - 1)` (exponential), at most `cap`. The result is a random delay between `least` and `most` times
    that, and again at most `cap`.

    >>> [Curve("exponential", 2.0, cap=5.0).after(failures) for failures in (1, 2, 3)]
    [2.0, 4.0, 5.0]
    """

    kind: str
    delay: float
    cap: float = LONGEST
    least: float = 1.0
    most: float = 1.0

    def after(self, failures: int, rng: Callable[[], float] = random.random) -> float:
        """Returns the seconds to wait after the n-th failure, counted from 1. `rng` returns numbers from 0 up to 1."""
        wait = _float(self.delay)
        if self.kind == "exponential":
            wait = _doubled(wait, failures - 1)
        elif self.kind == "linear":
            wait *= min(failures, 2**53)
        wait = min(wait, self.cap)
        if self.least == self.most:
            return wait
        return min(wait * (self.least + (self.most - self.least) * rng()), self.cap)


def reconnect_delay(attempt: int, rng: Callable[[], float] = random.random) -> float:
    """Returns the seconds before the next attempt to connect, after `attempt` earlier ones: 0.1, 0.2, 0.4 ... up to 30.

    Varies at random by a fifth, so that a fleet does not reconnect all at once.

    >>> [reconnect_delay(attempt, rng=lambda: 0.5) for attempt in (0, 1, 5, 1_000_000)]
    [0.1, 0.2, 3.2, 30.0]
    """
    return min(_doubled(_RECONNECT_FIRST, attempt) * (0.8 + 0.4 * rng()), _RECONNECT_LONGEST)


def _doubled(start: float, times: int) -> float:
    try:
        return math.ldexp(start, times)
    except OverflowError:
        return LONGEST


def _seconds(field: str, value: Any) -> float:
    given = value.total_seconds() if isinstance(value, timedelta) else value
    number = _number(field, given, "must be a number of seconds or a timedelta")
    if not 0 <= number < math.inf:
        raise InvalidOption(field, value, "must be 0 or more seconds")
    return number


def _fraction(field: str, value: Any) -> float:
    number = _number(field, value, "must be a number")
    if not 0 <= number <= 1:
        raise InvalidOption(field, value, "must lie between 0 and 1")
    return number


def _number(field: str, value: Any, rule: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidOption(field, value, rule)
    return _float(value)


def _float(value: float) -> float:
    """Returns the number as a float. An integer too large for a float becomes infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
