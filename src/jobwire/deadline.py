"""A deadline for a call to a store.

`asyncio.timeout` also ends a call when the event loop itself was blocked: the answer has arrived and waits to be read,
but the timer runs first. A timer that fires late is the sign of a blocked loop. This one then adds the time by which it
was late, so that the answer can be read. It does so three times at most, so that the deadline holds even if the loop is
always late.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

_LATE = 0.1
_LEAST_GRANT = 1.0
_GRANTS = 3


class deadline:  # noqa: N801 - reads as a statement: async with deadline(5):
    """Raises TimeoutError in a block that takes longer than `seconds` (None: never). Time with a blocked loop is not
    counted."""

    __slots__ = ("_due", "_entered", "_grants", "_limit", "_loop", "_seconds", "_timer", "ended")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._grants = _GRANTS
        self._limit = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        self._entered = False
        self.ended = False
        """True once `end` was called."""

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        self._entered = True
        self._loop = asyncio.get_running_loop()
        if self._seconds is not None:
            self._start(self._seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._entered = False
        if self._timer is not None:
            self._timer.cancel()
        return await self._limit.__aexit__(kind, error, trace)

    def end(self) -> None:
        """Ends the block now, as if its time were over."""
        self.ended = True
        self._loop.call_soon(self._be_over)

    def _be_over(self) -> None:
        if self._entered and not self._limit.expired():
            self._limit.reschedule(self._loop.time())

    def _start(self, seconds: float) -> None:
        self._due = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._due, self._expire)

    def _expire(self) -> None:
        late = self._loop.time() - self._due
        if late > _LATE and self._grants > 0:
            self._grants -= 1
            self._start(min(max(late, _LEAST_GRANT), max(self._seconds or 0.0, _LEAST_GRANT)))
        else:
            self._be_over()
