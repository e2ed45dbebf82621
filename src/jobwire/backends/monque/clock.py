"""Milliseconds since 1970 by this machine's clock, which is how every Monque peer tells the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
LATEST = datetime(9999, 12, 31, tzinfo=UTC)
EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
"""A bound for "any date at all": BSON compares a date with dates only, so other types stay out."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def moment(ms: int) -> datetime:
    """The instant as MongoDB holds it; one beyond the calendar becomes the calendar's last."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return LATEST


def ms_of(when: Any) -> int | None:
    """The milliseconds of a stored date; None for anything else."""
    return (when - _EPOCH) // _MILLISECOND if isinstance(when, datetime) else None


def soon(ms: int) -> float:
    """Seconds from now until then; 0 if it has passed."""
    return max(0.0, (ms - now_ms()) / 1000)
