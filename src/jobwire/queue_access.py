"""Access to one queue of a store: opened at its first use, refused once the queue has been closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from jobwire import forking
from jobwire.boundary import Backend, Capabilities, Feature
from jobwire.connection import Connection
from jobwire.errors import Closed

Part = TypeVar("Part")


class QueueAccess:
    """Opens one queue, and returns its backend or a part of it. A Queue and its admin share one.

    In a forked child process, and when the event loop is closed, the connection gets another backend and opens again at
    its first use, so that access works there too.
    """

    def __init__(self, queue: str, connection: Connection, events_max_len: int | None = None) -> None:
        self.queue = queue
        self.connection = connection
        self._events_max_len = events_max_len
        self._registered: Backend | None = None
        self._closed = False
        self._opening = asyncio.Lock()
        forking.follow(self, QueueAccess._after_fork)

    def _after_fork(self) -> None:
        self._opening = asyncio.Lock()

    @property
    def capabilities(self) -> Capabilities:
        return self.connection.backend.capabilities

    @property
    def is_open(self) -> bool:
        return self._registered is self.connection.backend and self.connection.is_open

    async def open(self, wait_for_store: float) -> None:
        """Connects to the store and registers the queue, also if it has been closed."""
        await self.connection.open(wait_for_store)
        async with self._opening:
            await self._register()

    async def _register(self) -> None:
        backend = self.connection.backend
        if self._registered is backend:
            return
        await backend.register(self.queue)
        if self._events_max_len is not None:
            control = self.capabilities.part(backend.event_control, Feature.EVENT_CONTROL)
            await control.limit_events(self.queue, self._events_max_len)
        self._registered, self._closed = backend, False

    async def backend(self) -> Backend:
        """Returns the backend, opened if this is the queue's first use. Raises Closed if the queue has been closed."""
        if not self.is_open:
            if self._closed:
                raise Closed(f"queue {self.queue!r} has been closed")
            await self.connection.reach()
            async with self._opening:
                await self._register()
        return self.connection.backend

    async def part(self, choose: Callable[[Backend], Part | None], feature: Feature) -> Part:
        """Returns a part of the opened backend. A feature that the protocol lacks is refused before opening."""
        self.capabilities.require(feature)
        return self.capabilities.part(choose(await self.backend()), feature)

    def close(self) -> None:
        """Refuses further calls of `backend` and `part`. The connection stays as it is."""
        self._registered, self._closed = None, True
