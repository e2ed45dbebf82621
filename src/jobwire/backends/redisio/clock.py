"""The server's time. All workers and producers of a queue use it, so that their own clocks don't matter.

The difference between the server's clock and this process's monotonic clock is measured every few seconds. A wrong
local clock, or one that is set while the process runs, has no effect. The reply to TIME counts from when it arrives, so
a computed time may be behind by a part of the round trip and is never ahead. A later measurement changes the difference
only if it contradicts it: otherwise a slow reply would set the clock back, and a job could end before it began.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

from redis.exceptions import NoPermissionError

from jobwire.errors import StoreRefused

_log = logging.getLogger("jobwire.redis")
_HOLDS_FOR = 10.0
"""Seconds after which the clock is measured again."""
_DRIFT = 5.0
"""Milliseconds by which two clocks may differ after that time although neither was set."""


class ServerClock:
    """Gives milliseconds since 1970 by the server's clock, or by this machine's if the account may not run TIME."""

    def __init__(self, where: str, ask: Callable[[], Awaitable[Any]]) -> None:
        self._where = where
        self._ask = ask
        self._ahead = 0.0
        """Milliseconds that the server's time is ahead of our monotonic clock."""
        self._measured = -math.inf
        self.available = True
        """False if the account may not run TIME."""

    async def now_ms(self) -> int:
        """Returns the server's time, measured again if the last measurement is too old."""
        if time.monotonic() - self._measured > _HOLDS_FOR:
            await self._measure()
        return int(self.last_known_ms())

    def last_known_ms(self) -> float:
        """Returns the server's time by the last measurement, without a round trip."""
        return time.monotonic() * 1000 + self._ahead

    def passed(self, moment: float) -> None:
        """Moves the clock forward, if needed, after a reply that holds the server's time: it is not earlier now."""
        self._ahead = max(self._ahead, moment - time.monotonic() * 1000)

    def forget(self) -> None:
        """Discards the measurement: after a reconnect, another server may answer."""
        self._measured = -math.inf

    async def _measure(self) -> None:
        asked = time.monotonic()
        now: float = time.time() * 1000
        if self.available:
            try:
                seconds, micros = await self._ask()
                now = int(seconds) * 1000 + int(micros) / 1000
            except StoreRefused as refused:
                if not isinstance(refused.__cause__, NoPermissionError):
                    raise
                asked, now = time.monotonic(), time.time() * 1000
                self._use_local_clock()
        self._measured = time.monotonic()
        self._ahead = _agreed(self._ahead, now - self._measured * 1000, now - asked * 1000)

    def _use_local_clock(self) -> None:
        if self.available:  # several callers may get here at the same time
            self.available = False
            _log.warning("%s: the account may not run TIME, so this machine's clock is used for delays", self._where)


def _agreed(before: float, least: float, most: float) -> float:
    """Returns the difference after a measurement that allows those from `least` to `most`.

    >>> _agreed(100.0, 40.0, 120.0), _agreed(100.0, 110.0, 120.0), _agreed(100.0, 96.0, 98.0), _agreed(100.0, 1.0, 2.0)
    (100.0, 110.0, 98.0, 1.0)
    """
    if before <= most:
        return max(before, least)
    return most if before - most <= _DRIFT else least
