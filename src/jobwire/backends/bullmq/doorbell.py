"""Waiting for work the way BullMQ's workers do: blocked on the queue's `marker`.

A marker is taken by exactly one waiting worker, so a worker that takes one and goes away without looking for jobs
would leave them to the others' next look, seconds later. That is why a wait that is given up is withdrawn: the server
is asked to end it, and a marker that came in the meantime is put back.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.redisio.connect import RedisStore
from jobwire.errors import JobwireError

LONGEST_BLIND = 5.0
"""Seconds after which a worker looks for jobs unasked (BullMQ's drainDelay)."""
LONGEST_KNOWN = 10.0
"""The same when a delayed job is known to come due."""
_SLACK = 2.0
_WITHDRAWAL = 2.0

Marker = tuple[bytes, float]
_READY: Marker = (b"0", 0.0)


class Doorbell:
    """One worker's place at the queue's marker, on a connection of its own."""

    def __init__(self, store: RedisStore, keys: Keys, worker: str | None) -> None:
        self._store = store
        self._keys = keys
        self._link = store.blocking(keys.marker, keys.connection_name(worker))
        self._withdrawal: asyncio.Task[None] | None = None
        self.due_ms: float | None = None
        """When the next delayed job is known to come due."""

    async def wait(self, timeout: float) -> None:
        """Return when a job may be ready, at the latest after the timeout (or the shorter longest waits above)."""
        await self._withdrawn()
        end = time.monotonic() + timeout
        while True:
            block = min(end - time.monotonic(), LONGEST_BLIND if self.due_ms is None else LONGEST_KNOWN)
            if self.due_ms is not None:
                block = min(block, self.due_ms / 1000 - time.time())
            if block <= 0:
                break
            marker = await self._take(max(block, 0.002))
            if marker is None or marker[0] != b"1":
                break
            self.due_ms = marker[1]
        if self.due_ms is not None and self.due_ms / 1000 <= time.time():
            self.due_ms = None

    async def ring(self) -> None:
        """Wake another worker that waits."""
        await self._put_back(_READY)

    async def _take(self, block: float) -> Marker | None:
        try:
            reply = await self._link.call("BZPOPMIN", self._keys.marker, f"{block:.3f}", within=block + _SLACK)
        except asyncio.CancelledError:
            if self._link.waiting:
                self._withdrawal = asyncio.create_task(self._withdraw())
            raise
        return _marker(reply)

    async def _withdraw(self) -> None:
        """End the wait that the server still has, and put back what it gave."""
        marker: Marker | None = _READY
        answer = asyncio.create_task(self._link.answer(_WITHDRAWAL))
        pause = 0.001
        try:
            while not answer.done():
                # The command may still be on its way, so one request may come too early.
                await self._link.unblock()
                await asyncio.wait([answer], timeout=pause)
                pause = min(2 * pause, 0.1)
            marker = _marker(answer.result())
        except JobwireError:
            # What became of the wait is unknown. A marker too many costs some worker one look.
            answer.cancel()
            await asyncio.wait([answer])
            await self._link.drop()
        if marker is not None:
            with suppress(JobwireError):
                await self._put_back(marker)

    async def _put_back(self, marker: Marker) -> None:
        # A delay marker that someone has set since is newer than the one taken.
        await self._store.call("ZADD", self._keys.marker, "NX", repr(marker[1]), marker[0])

    async def _withdrawn(self) -> None:
        if self._withdrawal is not None:
            await asyncio.shield(self._withdrawal)
            self._withdrawal = None

    async def reset(self) -> None:
        """Drop the connection; the next wait opens a new one."""
        await self._withdrawn()
        await self._link.drop()

    async def close(self) -> None:
        await self._withdrawn()
        await self._link.drop()
        if self.due_ms is not None:
            due, self.due_ms = self.due_ms, None
            with suppress(JobwireError):
                await self._put_back((b"1", due))


def _marker(reply: Any) -> Marker | None:
    return None if reply is None else (reply[1], float(reply[2]))
