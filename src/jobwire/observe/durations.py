"""Run times, counted in buckets."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from jobwire.errors import InvalidOption

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Upper bounds in seconds, for jobs that do nothing up to jobs that take half an hour."""


class Durations:
    """The run times of one queue. Written by workers in any thread, read by a scrape in another."""

    __slots__ = ("_bounds", "_counts", "_lock", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def note(self, seconds: float) -> None:
        with self._lock:
            self._counts[bisect_left(self._bounds, seconds)] += 1
            self._sum += seconds

    def read(self) -> tuple[list[tuple[str, float]], float]:
        """Returns the cumulative buckets in Prometheus' form (bound as text, number of runs up to it), and the sum."""
        with self._lock:
            counts, total = list(self._counts), self._sum
        return list(zip([*map(repr, self._bounds), "+Inf"], map(float, accumulate(counts)), strict=True)), total


def bounds_of(buckets: Sequence[float]) -> tuple[float, ...]:
    """Returns the bounds of the buckets. Raises InvalidOption if they are not positive and rising."""
    bounds = tuple(float(bound) for bound in buckets)
    if not bounds or any(low >= high for low, high in zip((0.0, *bounds), bounds, strict=False)):
        raise InvalidOption("buckets", tuple(buckets), "must be seconds above 0 in rising order")
    return bounds
