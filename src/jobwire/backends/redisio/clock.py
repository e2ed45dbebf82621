"""The server's time, which all workers and producers of a queue share whatever their own clocks show.

The difference between the server's clock and this process's monotonic one is measured every few seconds, so a wrong
local clock, or one that is set while we run, changes nothing. The answer to TIME is taken for the moment at which it
arrives: what is reckoned from it may be late by half a round trip and is never early.
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
"""Seconds for which a measurement is good."""


class ServerClock:
    """Milliseconds since 1970 by the server's clock; by our own if the account may not run TIME."""

    def __init__(self, where: str, ask: Callable[[], Awaitable[Any]]) -> None:
        self._where = where
        self._ask = ask
        self._ahead = 0.0
        """Milliseconds that the server's time is ahead of our monotonic clock."""
        self._measured = -math.inf
        self.available = True
        """False if the server refuses to tell its time."""

    async def now_ms(self) -> int:
        """The server's time."""
        if time.monotonic() - self._measured > _HOLDS_FOR:
            await self._measure()
        return int(self.last_known_ms())

    def last_known_ms(self) -> float:
        """The server's time by the last measurement, without asking again."""
        return time.monotonic() * 1000 + self._ahead

    def forget(self) -> None:
        """Measure again at the next use: another server may answer from now on."""
        self._measured = -math.inf

    async def _measure(self) -> None:
        now: float = time.time() * 1000
        if self.available:
            try:
                seconds, micros = await self._ask()
                now = int(seconds) * 1000 + int(micros) / 1000
            except StoreRefused as refused:
                if not isinstance(refused.__cause__, NoPermissionError):
                    raise
                now = time.time() * 1000
                self._do_without()
        self._measured = time.monotonic()
        self._ahead = now - self._measured * 1000

    def _do_without(self) -> None:
        if self.available:  # several callers may have asked at a time
            self.available = False
            _log.warning("%s: the account may not run TIME, so delays go by this machine's clock", self._where)
