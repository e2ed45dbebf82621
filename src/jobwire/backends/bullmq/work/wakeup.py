"""Waiting for work the way BullMQ's workers do: blocked on the queue's `marker`.

A marker is taken by exactly one waiting worker, so a worker that takes one and goes away without looking for jobs
would leave them to the others' next look, seconds later. That is why a wait that is given up is withdrawn: the server
is asked to end it, and a marker that came in the meantime is put back.

An order to claim a job is sent along with the wait. The server carries it out the moment the wait ends, so that a
waking worker has its job in hand, a round trip earlier than if it had to ask (measured on an idle queue: two thirds of
the time from add to handler). The order has an answer of its own, and a job in it is ours whatever the wait itself was
answered with. An account that lacks a right for this waits without orders, or looks every second.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Any, Protocol

from redis.exceptions import NoPermissionError

from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.redisio.connect import RedisStore
from jobwire.errors import JobwireError, StoreRefused

_log = logging.getLogger("jobwire.bullmq")

LONGEST_BLIND = 5.0
"""Seconds after which a worker looks for jobs unasked (BullMQ's drainDelay)."""
LONGEST_KNOWN = 10.0
"""The same when a delayed job is known to come due."""
LONGEST_DEAF = 1.0
"""The same for an account that may not wait for the marker."""
_SLACK = 2.0
_WITHDRAWAL = 2.0
_CLOSING = 3.0

Marker = tuple[bytes, float]
_READY: Marker = (b"0", 0.0)


class Orders(Protocol):
    """Claiming by an order that is carried out when a wait ends."""

    def place(self) -> tuple[Any, ...] | None:
        """The command of a new order, if one is wanted."""
        ...

    def fill(self, reply: Any) -> bool:
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
        self._link = store.blocking(keys.marker, keys.connection_name(worker))
        self._withdrawal: asyncio.Task[None] | None = None
        self._taken: Marker | None = None
        self._deaf = False
        self.ordered = False
        """True while an order is out, and its job would be taken."""
        self.due_ms: float | None = None
        """When the next delayed job is known to come due."""

    async def wait(self, timeout: float) -> None:
        """Return when a job may be ready, at the latest after the timeout (or the shorter longest waits above)."""
        await self.withdrawn()
        end = time.monotonic() + timeout
        while True:
            now = await self._store.clock.now_ms()
            block = min(end - time.monotonic(), LONGEST_BLIND if self.due_ms is None else LONGEST_KNOWN)
            if self.due_ms is not None:
                block = min(block, (self.due_ms - now) / 1000)
            if block <= 0:
                break
            if self._deaf:
                await asyncio.sleep(min(block, LONGEST_DEAF))
                break
            marker, claimed = await self._take(max(block, 0.002))
            if claimed or marker is None or marker[0] != b"1":
                break
            self.due_ms = marker[1]
        if self.due_ms is not None and self.due_ms <= self._store.clock.last_known_ms():
            self.due_ms = None

    async def ring(self) -> None:
        """Wake another worker that waits."""
        await self._put_back(_READY)

    async def leave_due(self) -> None:
        """Leave it to other workers to wake when the next delayed job comes due."""
        if self.due_ms is not None:
            await self._put_back((b"1", self.due_ms))
            self.due_ms = None

    async def _take(self, block: float) -> tuple[Marker | None, bool]:
        """Wait for a marker: the marker, and whether the order brought a job."""
        await self._link.connect(_SLACK)
        order = self._orders.place() if self._link.can_unblock and self._store.clock.available else None
        command = ("BZPOPMIN", self._keys.marker, f"{block:.3f}")
        self.ordered, self._taken = order is not None, None
        try:
            try:
                reply = await self._link.call(*command, within=block + _SLACK, then=order or ())
            except JobwireError as error:
                # The server has refused the wait or broken it off; the order behind it was carried out all the same.
                if self._link.unanswered and await self._collect():
                    return None, True
                if self._is_no_outage(error):
                    return None, False
                raise
            self._taken = _marker_in(reply)
            return self._taken, order is not None and await self._collect()
        except asyncio.CancelledError:
            if self._link.unanswered:
                self._withdrawal = asyncio.create_task(self._withdraw(order is not None))
            raise
        finally:
            self.ordered = False

    def _is_no_outage(self, error: JobwireError) -> bool:
        """True if the worker goes on although the wait was answered with this error."""
        if isinstance(error.__cause__, NoPermissionError):
            self._deaf = True
            _log.warning(
                "%s: the account may not run BZPOPMIN, so no job wakes the workers of queue %s: they look every %g s",
                *(self._store.where, self._keys.queue, LONGEST_DEAF),
            )
            return True
        return str(error.__cause__).startswith("UNBLOCKED")

    async def _collect(self) -> bool:
        """Take in what the order came to; True if it brought a job."""
        try:
            return self._orders.fill(await self._link.answer(_SLACK))
        except StoreRefused:
            return False  # the script is unknown there, or the slot has moved: the worker's own claim will see to it

    async def _withdraw(self, has_order: bool) -> None:
        """End the wait that the server still has, and put back what it gave."""
        marker: Marker | None = _READY
        if self._link.can_unblock:
            answers = asyncio.create_task(self._answers(has_order))
            with suppress(JobwireError, TimeoutError):
                async with asyncio.timeout(_WITHDRAWAL):
                    pause = 0.001
                    while not answers.done():
                        # The command may still be on its way, so one request may come too early.
                        await self._link.unblock()
                        await asyncio.wait([answers], timeout=pause)
                        pause = min(2 * pause, 0.1)
                    marker = answers.result()
            answers.cancel()
            await asyncio.wait([answers])
        if self._link.unanswered:
            # What became of the wait is unknown. A marker too many costs some worker one look.
            await self._link.drop()
        if marker is not None:
            with suppress(JobwireError, TimeoutError):
                async with asyncio.timeout(_WITHDRAWAL):
                    await self._put_back(marker)

    async def _answers(self, has_order: bool) -> Marker | None:
        """What is left of a wait that was given up: its marker, and its order's job, which goes back to the queue."""
        marker = self._taken or _READY
        if self._link.unanswered > has_order:
            try:
                marker = _marker_in(await self._link.answer(_WITHDRAWAL))
            except JobwireError:
                marker = _READY
        if self._link.unanswered and await self._collect():
            await self._orders.refuse()
        return marker

    async def _put_back(self, marker: Marker) -> None:
        # A delay marker that someone has set since is newer than the one taken.
        await self._store.call("ZADD", self._keys.marker, "NX", repr(marker[1]), marker[0])

    async def withdrawn(self) -> None:
        """Return when a wait that was given up has left nothing behind."""
        if self._withdrawal is not None:
            await asyncio.shield(self._withdrawal)
            self._withdrawal = None

    async def reset(self) -> None:
        """Drop the connection; the next wait opens a new one."""
        await self.withdrawn()
        await self._link.drop()

    async def close(self) -> None:
        """Leave the markers to other workers, if the server answers in time."""
        with suppress(JobwireError, TimeoutError):
            async with asyncio.timeout(_CLOSING):
                await self.withdrawn()
                await self.leave_due()
        if self._withdrawal is not None:
            self._withdrawal.cancel()
            await asyncio.wait([self._withdrawal])
            self._withdrawal = None
        await self._link.drop()


def _marker_in(reply: Any) -> Marker | None:
    return None if reply is None else (reply[1], float(reply[2]))
