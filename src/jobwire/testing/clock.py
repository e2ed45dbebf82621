"""A clock that a test can move on."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from jobwire.checks import Seconds, aware, seconds


class Clock:
    """The time of a store in memory. It runs like a real clock, from `start` or from now, and can be moved on:

        clock = Clock(datetime(2026, 12, 24, 18, tzinfo=UTC))
        async with app.testing(clock=clock) as t:
            clock.advance(3600)

    Only the store takes its time from here: what is due, how long unique keys and leases last. Code that asks for the
    time itself, such as a task with datetime.now(), gets the real one.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._ahead = 0.0 if start is None else aware("start", start).timestamp() - time.time()
        self._listeners: list[Callable[[], None]] = []

    def now(self) -> datetime:
        """Returns the time."""
        return datetime.fromtimestamp(self.timestamp(), UTC)

    def timestamp(self) -> float:
        """Returns the time in seconds since the epoch."""
        return time.time() + self._ahead

    def advance(self, by: Seconds) -> None:
        """Moves the clock on. Jobs that become due by this are run by the next `t.run()`, or by a running worker."""
        self._ahead += seconds("by", by)
        for listener in self._listeners:
            listener()

    def advance_to(self, moment: datetime) -> None:
        """Moves the clock on to a moment. Does nothing if that is in the past."""
        self.advance(max(0.0, aware("moment", moment).timestamp() - self.timestamp()))

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls the function whenever the clock has been moved."""
        self._listeners.append(listener)

    def leave(self, listener: Callable[[], None]) -> None:
        """Ends what `listen` began."""
        self._listeners.remove(listener)

    def __repr__(self) -> str:
        return f"<Clock {self.now().isoformat(timespec='seconds')}>"
