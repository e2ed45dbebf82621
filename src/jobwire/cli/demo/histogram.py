"""A histogram of durations, in constant memory."""

from __future__ import annotations

import math
from collections import Counter

_STEP = math.log(1.05)
_SMALLEST = 1e-5


class Histogram:
    """Counts durations in steps of five per cent, which is also the largest error of a percentile.

    >>> waits = Histogram()
    >>> for milliseconds in range(1, 101):
    ...     waits.add(milliseconds / 1000)
    >>> 0.047 < waits.percentile(0.50) < 0.053, 0.09 < waits.percentile(0.95) < 0.1
    (True, True)
    """

    def __init__(self) -> None:
        self._steps: Counter[int] = Counter()

    def __len__(self) -> int:
        return self._steps.total()

    def add(self, seconds: float) -> None:
        self._steps[round(math.log(max(seconds, _SMALLEST) / _SMALLEST) / _STEP)] += 1

    def percentile(self, part: float) -> float | None:
        """Returns the duration that this part of the events did not exceed, or None without events."""
        wanted = math.ceil(len(self) * part)
        seen = 0
        for step in sorted(self._steps):
            seen += self._steps[step]
            if seen >= wanted:
                return _SMALLEST * math.exp(step * _STEP)
        return None


def milliseconds(seconds: float) -> str:
    """Returns a duration in milliseconds as text.

    >>> milliseconds(0.00042), milliseconds(0.0123), milliseconds(1.5)
    ('0.4', '12', '1,500')
    """
    value = seconds * 1000
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"
