"""The limit on starts of jobs in a period of time.

>>> Rate(10), Rate(100, per=timedelta(minutes=1))
(Rate(jobs=10, per=1.0), Rate(jobs=100, per=60.0))
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from jobwire.checks import Seconds, seconds, whole
from jobwire.errors import InvalidOption
from jobwire.spelling import refuses_typos


@refuses_typos("a Rate")
@dataclass(frozen=True, slots=True)
class Rate:
    """At most `jobs` starts in each period of `per` seconds."""

    jobs: int
    per: float = 1.0

    def __init__(self, jobs: int, per: Seconds = 1.0) -> None:
        object.__setattr__(self, "jobs", whole("rate.jobs", jobs, minimum=1))
        object.__setattr__(self, "per", seconds("rate.per", per, minimum=0.001))


def rate_of(field_name: str, value: Any) -> Rate | None:
    """Returns a rate, checked. None means no limit.

    >>> rate_of("rate", (10, 60))
    Traceback (most recent call last):
        ...
    jobwire.errors.InvalidOption: rate: must be a Rate, here Rate(10, per=60) (got (10, 60))
    """
    if value is None or isinstance(value, Rate):
        return value
    raise InvalidOption(field_name, value, f"must be a Rate, {_example(value)}")


def _example(value: Any) -> str:
    match value:
        case bool():
            pass
        case int():
            return f"here Rate({value})"
        case (int() as jobs, int() | float() | timedelta() as per):
            return f"here Rate({jobs}, per={per!r})"
        case _:
            pass
    return "e.g. Rate(10, per=60)"
