"""Waits after failed calls to the store: longer each time, with a line in the log, and without end unless limited.

The waits follow min(0.1 · 2^n · (0.8 + 0.4·random), 30 s). Several calls may fail in one outage. They share one count.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from jobwire.backoff import reconnect_delay
from jobwire.counted import counted
from jobwire.errors import JobwireError, NewerSideData, StoreRefused, StoreUnavailable
from jobwire.journal import Journal
from jobwire.worker.stats import Stats

_RESET = 5.0
"""Seconds that dropping broken connections may take."""


class Outage:
    """Records whether the store answers, and waits while it does not."""

    def __init__(self, journal: Journal, stats: Stats, max_attempts: int) -> None:
        self._journal = journal
        self._stats = stats
        self._max_attempts = max_attempts
        self._attempts = 0
        self._since = 0.0
        self._pause: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        return self._attempts == 0

    async def endure(self, error: Exception, reset: Callable[[], Awaitable[None]]) -> None:
        """Returns when it is time to try a failed call again. Raises if that would not help, or after the allowed
        attempts."""
        if isinstance(error, NewerSideData):
            raise error  # only an upgrade of jobwire helps
        if self._pause is None or self._pause.done():
            self._note(error)
            self._pause = asyncio.create_task(self._wait(reset, reconnect_delay(self._attempts - 1)))
        await asyncio.shield(self._pause)

    def over(self) -> None:
        """Ends the outage, after a call that succeeded."""
        if self._attempts:
            away = time.monotonic() - self._since
            self._journal.info("the store answers again after %.1f s; going on", away)
            self._attempts = 0

    def _note(self, error: Exception) -> None:
        reason = str(error) or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)
        if self._attempts == 0:
            self._since = time.monotonic()
        if self._max_attempts and self._attempts >= self._max_attempts:
            attempts = counted(self._attempts, "attempt")
            raise StoreUnavailable(f"gave up after {attempts} to reach the store: {reason}") from error
        self._attempts += 1
        self._stats.reconnects += 1
        category = "permanent" if isinstance(error, StoreRefused) else "transient"
        unexpected = not isinstance(error, (JobwireError, TimeoutError))
        self._journal.warning(
            "a call to the store failed (%s: %s); attempt %d to reach it follows, running jobs go on",
            category, reason, self._attempts,
            exc_info=error if unexpected else None,
            extra={"category": category},
        )  # fmt: skip

    async def _wait(self, reset: Callable[[], Awaitable[None]], delay: float) -> None:
        with contextlib.suppress(Exception):  # the dropped connections are broken anyway
            async with asyncio.timeout(_RESET):
                await reset()
        await asyncio.sleep(delay)
