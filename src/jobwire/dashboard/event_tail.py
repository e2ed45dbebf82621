"""The last events of a queue, gathered while someone looks at them."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import Sequence

from jobwire.boundary import Feature
from jobwire.errors import JobwireError
from jobwire.model import Event, EventKind
from jobwire.queue import Queue

MOST, MOST_PROGRESS = 200, 50
"""Events that are kept. A job may report its progress many times a second, so those have a place of their own."""
_AT_FIRST = 1000
_KEPT = 60.0
"""Seconds after the last call of `events` in which events are still gathered."""


class EventTail:
    """Reads the stream of a queue from the first call of `events` on, until nothing has asked for a minute."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._events: deque[tuple[int, Event]] = deque(maxlen=MOST)
        self._progress: deque[tuple[int, Event]] = deque(maxlen=MOST_PROGRESS)
        self._numbers = itertools.count()
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
        return [event for _, event in heapq.merge(*map(reversed, (self._events, self._progress)), key=_age)]

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _gather(self) -> None:
        following: asyncio.Task[None] | None = None
        try:
            since: str | None = None
            if self._queue.capabilities.has(Feature.EVENT_CONTROL):
                known = await self._queue.admin.last_events(_AT_FIRST)
                for event in known:
                    self._keep(event)
                since = known[-1].id if known else None
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
            self._keep(event)

    def _keep(self, event: Event) -> None:
        kept = self._progress if event.kind is EventKind.PROGRESS else self._events
        kept.append((next(self._numbers), event))


def _age(numbered: tuple[int, Event]) -> int:
    return -numbered[0]
