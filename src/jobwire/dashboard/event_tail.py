"""The last events of a queue, gathered while someone looks at them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence

from jobwire.boundary import Feature
from jobwire.errors import JobwireError
from jobwire.model import Event
from jobwire.queue import Queue

MOST = 200
_KEPT = 60.0
"""Seconds after the last call of `events` in which events are still gathered."""


class EventTail:
    """Reads the stream of a queue from the first call of `events` on, until nothing has asked for a minute."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._events: deque[Event] = deque(maxlen=MOST)
        self._asked = time.monotonic()
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._error: JobwireError | None = None

    @property
    def ended(self) -> bool:
        return self._task is not None and self._task.done()

    async def events(self) -> Sequence[Event]:
        """Returns the events that are known, newest first. Raises the error that ended the reading, if one did."""
        self._asked = time.monotonic()
        if self._task is None:
            self._task = asyncio.create_task(self._gather())
        await self._ready.wait()
        if self._error is not None:
            raise self._error
        return list(reversed(self._events))

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _gather(self) -> None:
        following: asyncio.Task[None] | None = None
        try:
            since: str | None = None
            if self._queue.capabilities.has(Feature.EVENT_CONTROL):
                self._events.extend(await self._queue.admin.last_events(MOST))
                since = self._events[-1].id if self._events else None
            following = asyncio.create_task(self._follow(since))
            self._ready.set()
            while time.monotonic() - self._asked < _KEPT and not following.done():
                await asyncio.wait([following], timeout=_KEPT / 4)
            if following.done():
                following.result()
        except JobwireError as error:
            self._error = error
        finally:
            self._ready.set()
            if following is not None:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    async def _follow(self, since: str | None) -> None:
        async for event in self._queue.events(since):
            self._events.append(event)
