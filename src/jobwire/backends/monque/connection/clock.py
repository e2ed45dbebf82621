"""Converts times to and from MongoDB's form, and follows the server's clock.

Peers of this protocol write the times of their own clocks. A worker whose clock is minutes ahead would take healthy
jobs for stalled ones and run delayed jobs early. So jobwire uses the one clock that all of its processes share: it asks
the server for the time every 30 seconds and counts on from there. Queries then contain plain dates, for which indexes
can be used, and an outcome can be recognised by the date that it wrote.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_STEADY: int | None = getattr(time, "CLOCK_BOOTTIME", None)
_TRUSTED_NS = 30 * 1_000_000_000
_COARSE_NS = 2 * 1_000_000
"""The error of the server's answer, which is in whole milliseconds."""
LATEST = datetime(9999, 12, 31, tzinfo=UTC)
EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
"""A bound that every date meets. BSON compares a date with dates only, so other types do not meet it."""


def ticks_ns() -> int:
    """Returns the time of a clock that is never set. Where the system has such a clock, it also counts the time that
    the machine is suspended."""
    return time.clock_gettime_ns(_STEADY) if _STEADY is not None else time.monotonic_ns()


def now_ms() -> int:
    """Returns the time of this machine's clock."""
    return time.time_ns() // 1_000_000


def moment(ms: int) -> datetime:
    """Returns a time in MongoDB's form. One beyond year 9999 becomes the last day of that year."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return LATEST


def ms_of(when: Any) -> int | None:
    """Returns the milliseconds of a stored date, None for anything else."""
    return (when - _EPOCH) // _MILLISECOND if isinstance(when, datetime) else None


class ServerClock:
    """The server's time, counted on from its last answer."""

    def __init__(self) -> None:
        # Until the server has answered, this machine's time.
        self._ahead_ns = time.time_ns() - ticks_ns()
        self._asked_ns: int | None = None

    @property
    def old(self) -> bool:
        """True if the server should be asked again: its clock may have been set, or another server is primary now."""
        return self._asked_ns is None or ticks_ns() - self._asked_ns > _TRUSTED_NS

    def doubt(self) -> None:
        """Makes the next use ask the server again."""
        self._asked_ns = None

    def trust(self) -> None:
        """Keeps the clock as it is for the next 30 seconds."""
        self._asked_ns = ticks_ns()

    def set(self, server: datetime, asked_ns: int, answered_ns: int) -> None:
        """Sets the clock by the server's answer. `asked_ns` and `answered_ns` are in `ticks_ns`."""
        between = (asked_ns + answered_ns) // 2
        error = (answered_ns - asked_ns) // 2 + _COARSE_NS
        ahead = (server - _EPOCH) // _MILLISECOND * 1_000_000 - between
        ours = time.time_ns() - ticks_ns()
        # A difference within the error of the measurement counts as none, so that all processes of a machine agree.
        self._ahead_ns = ours if abs(ahead - ours) <= error else ahead
        self._asked_ns = answered_ns

    def now_ms(self) -> int:
        return (ticks_ns() + self._ahead_ns) // 1_000_000

    def soon(self, ms: int) -> float:
        """Returns the seconds until that time, 0 if it has passed."""
        return max(0.0, (ms - self.now_ms()) / 1000)
