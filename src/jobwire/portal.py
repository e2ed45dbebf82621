"""The portal: an event loop in a background thread, in which blocking code runs coroutines."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from jobwire import forking

_LONGEST_CALLBACK, _LONGEST_FORK = 2.0, 10.0
"""Seconds that a fork waits for the portal to stand still, and the portal for the end of the fork."""


class Portal:
    """An event loop in a thread, started when first needed, for blocking callers to run coroutines in."""

    def __init__(self) -> None:
        self._start_over()
        forking.follow(self, Portal._start_over)
        os.register_at_fork(before=self._stand_still, after_in_parent=self._go_on)
        atexit.register(self._stop)

    def _start_over(self) -> None:
        """Makes everything new, also in a forked child: it has no loop thread, and locks in it may stay locked."""
        self.life = object()
        """Another one in each forked child."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._held: dict[int, threading.Event] = {}

    def _stand_still(self) -> None:
        """Keeps the loop between two callbacks while a thread forks. Inside of one it may be importing a module, and
        the lock of that import would be held in the child for good."""
        if self._loop is None or threading.current_thread() is self._thread:
            return
        stands, go_on = threading.Event(), self._held.setdefault(threading.get_ident(), threading.Event())

        def stand() -> None:
            stands.set()
            go_on.wait(_LONGEST_FORK)

        self._loop.call_soon_threadsafe(stand)
        stands.wait(_LONGEST_CALLBACK)

    def _go_on(self) -> None:
        if (held := self._held.pop(threading.get_ident(), None)) is not None:
            held.set()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine and returns its result. Interrupting the caller cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._running_loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], Any]) -> Any:
        """Runs a plain function in the loop's thread, where asyncio objects belong."""

        async def inside() -> Any:
            return function()

        return self.run(inside())

    def soon(self, function: Callable[[], None]) -> None:
        """Lets the loop run a plain function, without waiting for it."""
        self._running_loop().call_soon_threadsafe(function)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        forking.notice()
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="jobwire-sync", daemon=True)
                self._thread.start()
            return self._loop

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)


portal = Portal()
"""The one of this process."""
