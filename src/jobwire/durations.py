"""Durations as people write them: never negative, at most 100 years."""

from __future__ import annotations

import re

LONGEST = 100 * 365 * 86_400.0
"""The longest duration in seconds: a hundred years, which every store can add to the present time."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|min|[smhdw])")
RULE = "write a duration such as 90, 45s, 10m, 2h or 7d, at most 100 years"


def seconds_in(text: str) -> float | None:
    """Returns the seconds of a number, or of numbers with units. Returns None if the text is neither, or if it is
    negative, not a number or longer than 100 years.

    >>> seconds_in("90"), seconds_in("10m"), seconds_in("1h30m"), seconds_in("7d"), seconds_in("soon")
    (90.0, 600.0, 5400.0, 604800.0, None)
    >>> seconds_in("-5"), seconds_in("nan"), seconds_in("inf"), seconds_in("5200w"), seconds_in("6000w")
    (None, None, None, 3144960000.0, None)
    """
    written = text.strip().lower()
    total = _summed(written)
    return total if total is not None and 0.0 <= total <= LONGEST else None


def _summed(written: str) -> float | None:
    try:
        return float(written)
    except ValueError:
        pass
    total, rest = 0.0, written
    while found := _PART.match(rest):
        total += float(found[1]) * _UNITS[found[2]]
        rest = rest[found.end() :].lstrip()
    return None if rest or not written else total
