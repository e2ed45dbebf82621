"""Waiting for work the way BullMQ's workers do: blocked on the queue's `marker`.

A marker is taken by exactly one waiting worker, so a worker that takes one and goes away without looking for jobs
would leave them to the others' next look, seconds later. That is why a wait that is given up is withdrawn: the server
is asked to end it, and a marker that came in the meantime is put back.

An order to claim a job is sent along with the wait. The server carries it out the moment the wait ends, so that a
waking worker has its job in hand, a round trip earlier than if it had to ask (measured on an idle queue: two thirds of
the time from add to handler).
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress
from typing import Any, Protocol

from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.redisio.connect import RedisStore
from jobwire.errors import JobwireError, StoreRefused

LONGEST_BLIND = 5.0
"""Seconds after which a worker looks for jobs unasked (BullMQ's drainDelay)."""
LONGEST_KNOWN = 10.0
"""The same when a delayed job is known to come due."""
_SLACK = 2.0
_WITHDRAWAL = 2.0
_CLOCKS_AGREE = 10.0
"""Seconds for which a comparison of clocks holds."""

Marker = tuple[bytes, float]
_READY: Marker = (b"0", 0.0)


class Orders(Protocol):
    """Claiming by an order that is carried out when a wait ends."""

    def place(self, skew_ms: int) -> tuple[Any, ...]:
        """The command of a new order; `skew_ms` is what our clock is ahead of the server's."""
        ...

    async def fill(self, reply: Any) -> bool:
        """Take in the answer; True if it brought a job."""
        ...

    async def refuse(self) -> None:
        """Give back what was brought and not taken."""
        ...


class Doorbell:
    """One worker's place at the queue's marker, on a connection of its own."""

    def __init__(self, store: RedisStore, keys: Keys, worker: str | None, orders: Orders) -> None:
        self._store = store
        self._keys = keys
        self._orders = orders
        self._skew = 0
        self._skew_at = -math.inf
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
            marker, claimed = await self._take(max(block, 0.002))
            if claimed or marker is None or marker[0] != b"1":
                break
            self.due_ms = marker[1]
        if self.due_ms is not None and self.due_ms / 1000 <= time.time():
            self.due_ms = None

    async def ring(self) -> None:
        """Wake another worker that waits."""
        await self._put_back(_READY)

    async def _take(self, block: float) -> tuple[Marker | None, bool]:
        await self._compare_clocks()
        command = ("BZPOPMIN", self._keys.marker, f"{block:.3f}")
        try:
            marker = _marker(
                await self._link.call(*command, within=block + _SLACK, then=self._orders.place(self._skew))
            )
            return marker, await self._collect()
        except asyncio.CancelledError:
            if self._link.unanswered:
                self._withdrawal = asyncio.create_task(self._withdraw())
            raise

    async def _collect(self) -> bool:
        """Take in what the order came to; True if it brought a job."""
        try:
            return await self._orders.fill(await self._link.answer(_SLACK))
        except StoreRefused:
            return False  # the script is unknown there, or the slot has moved: the worker's own claim will see to it

    async def _compare_clocks(self) -> None:
        """The order is carried out later than it is written, so it can't say what time it is, only how far our clock
        is from the server's."""
        if time.monotonic() - self._skew_at > _CLOCKS_AGREE:
            seconds, micros = await self._link.call("TIME", within=_SLACK)
            self._skew = round(time.time() * 1000 - int(seconds) * 1000 - int(micros) / 1000)
            self._skew_at = time.monotonic()

    async def _withdraw(self) -> None:
        """End the wait that the server still has, and put back what it gave."""
        marker: Marker | None = _READY if self._link.unanswered > 1 else None
        answer = asyncio.create_task(self._answers())
        pause = 0.001
        try:
            while not answer.done():
                # The command may still be on its way, so one request may come too early.
                await self._link.unblock()
                await asyncio.wait([answer], timeout=pause)
                pause = min(2 * pause, 0.1)
            marker = answer.result()
        except JobwireError:
            # What became of the wait is unknown. A marker too many costs some worker one look.
            answer.cancel()
            await asyncio.wait([answer])
            await self._link.drop()
        if marker is not None:
            with suppress(JobwireError):
                await self._put_back(marker)

    async def _answers(self) -> Marker | None:
        """What is left of a wait that was given up: its marker, if that is still to come, and its order's job, which
        goes back to the queue."""
        marker = _marker(await self._link.answer(_WITHDRAWAL)) if self._link.unanswered > 1 else None
        if await self._collect():
            await self._orders.refuse()
        return marker

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
