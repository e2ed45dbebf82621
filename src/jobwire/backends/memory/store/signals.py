"""Waking coroutines that sleep in any event loop of the process."""

from __future__ import annotations

import asyncio
import contextlib


class Signal:
    """Wakes all coroutines that wait for it, from any thread.

    Every method is called while holding the store's lock. A coroutine that checks the store and registers under the
    same lock can't miss the change that it waits for.
    """

    def __init__(self) -> None:
        self._sleepers: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}

    def register(self) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[None] = loop.create_future()
        self._sleepers[sleeper] = loop
        return sleeper

    def leave(self, sleeper: asyncio.Future[None]) -> None:
        self._sleepers.pop(sleeper, None)

    def wake(self) -> None:
        sleepers, self._sleepers = self._sleepers, {}
        for sleeper, loop in sleepers.items():
            with contextlib.suppress(RuntimeError):  # that event loop is closed, and its coroutines are gone
                loop.call_soon_threadsafe(_finish, sleeper)


def _finish(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
