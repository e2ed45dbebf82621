"""Reads the sketches of `latency_hourly`: durations counted in buckets that grow by 2 %, see latency_sketch.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

GROWTH = 1.02


class Bars(NamedTuple):
    """A sketch as numbers: buckets, from 0 for the one below a millisecond, and how many runs fell into each."""

    buckets: NDArray[np.int64]
    counts: NDArray[np.float64]


def read_sketch(text: str) -> Bars | None:
    """Returns the bars of a sketch; None for an empty one, of runs without a known duration."""
    counted: dict[str, int] = orjson.loads(text) if text else {}
    if not counted:
        return None
    return Bars(np.array([int(key) + 1 for key in counted]), np.array(list(counted.values()), dtype=float))
