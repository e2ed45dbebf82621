"""Instants as MongoDB holds them, and what time it is by the server's clock.

Peers of this protocol write their own clocks' times. A worker whose clock is minutes ahead would take healthy jobs for
stalled ones and run delayed jobs early, so jobwire goes by the one clock that all of its processes share. It asks the
server what time it is, now and then, and counts on from there: conditions keep plain dates, which the indexes serve,
and an outcome can be recognised by the date that it wrote.
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
"""The server's answer is in whole milliseconds."""
LATEST = datetime(9999, 12, 31, tzinfo=UTC)
EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
"""A bound for "any date at all": BSON compares a date with dates only, so other types stay out."""


def ticks_ns() -> int:
    """A clock that nobody sets. Where the system has one, it goes on while the machine sleeps."""
    return time.clock_gettime_ns(_STEADY) if _STEADY is not None else time.monotonic_ns()


def now_ms() -> int:
    """By this machine's clock."""
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


class ServerClock:
    """The server's time, carried on from the last time that it was asked."""

    def __init__(self) -> None:
        # Until the server has been asked: as this machine has it.
        self._ahead_ns = time.time_ns() - ticks_ns()
        self._asked_ns: int | None = None

    @property
    def old(self) -> bool:
        """The server should be asked again: its clock may have been set, or another one is primary now."""
        return self._asked_ns is None or ticks_ns() - self._asked_ns > _TRUSTED_NS

    def doubt(self) -> None:
        """Ask again before the next use."""
        self._asked_ns = None

    def trust(self) -> None:
        """Go on as the clock is for a while."""
        self._asked_ns = ticks_ns()

    def set(self, server: datetime, asked_ns: int, answered_ns: int) -> None:
        """The server's answer, and when it was asked and answered in `ticks_ns`."""
        between = (asked_ns + answered_ns) // 2
        error = (answered_ns - asked_ns) // 2 + _COARSE_NS
        ahead = (server - _EPOCH) // _MILLISECOND * 1_000_000 - between
        ours = time.time_ns() - ticks_ns()
        # A difference that the measurement can't tell from none is none: then all clocks of a machine agree.
        self._ahead_ns = ours if abs(ahead - ours) <= error else ahead
        self._asked_ns = answered_ns

    def now_ms(self) -> int:
        return (ticks_ns() + self._ahead_ns) // 1_000_000

    def soon(self, ms: int) -> float:
        """Seconds from now until then; 0 if it has passed."""
        return max(0.0, (ms - self.now_ms()) / 1000)
