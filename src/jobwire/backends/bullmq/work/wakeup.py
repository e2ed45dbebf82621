"""Waits for jobs as BullMQ's workers do: by a blocking read of the queue's `marker`.

A marker goes to exactly one waiting worker. A worker that took one and stopped without claiming would leave the job to
the others until their waits end, seconds later. So a wait that is cancelled is withdrawn: the server is asked to end
it, and a marker that arrived in the meantime is put back.

The command of an early claim is sent together with the wait. The server runs it as soon as the wait ends, so that the
worker has its job a round trip earlier than if it claimed afterwards (measured on an idle queue: two thirds of the time
from add to handler). The command has a reply of its own. A job in that reply is claimed, whatever the reply to the wait
was. An account that lacks a permission for this waits without early claims, or polls every second.

An idle server ends a wait whose time is over only at its next tick, up to 100 ms later. So while it is known when the
next delayed job is due, a timer of the worker ends the wait (measured on an idle server: 2 ms late at the median
instead of 60).
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

LONGEST_WAIT = 5.0
"""Seconds after which a worker looks for jobs without a wakeup (BullMQ's drainDelay)."""
LONGEST_WAIT_FOR_DUE = 10.0
"""The same while the time is known when the next delayed job is due."""
POLL_EVERY = 1.0
"""The same for an account that may not wait for the marker."""
_SHORTEST_WAIT = 0.005
"""A wait this short is not sent to the server: the request to end it could arrive before it."""
_SLACK = 2.0
_WITHDRAWAL = 2.0
_CLOSING = 3.0

Marker = tuple[bytes, float]
_READY: Marker = (b"0", 0.0)


class EarlyClaimer(Protocol):
    """Claims a job by a command that the server runs when a wait ends."""

    def early_claim_command(self) -> tuple[Any, ...] | None:
        """Returns the command of a new early claim, or None if there should be none."""
        ...

    def read_early_claim(self, reply: Any) -> bool:
        """Reads the reply to the command. Returns True if a job was claimed."""
        ...

    async def undo_early_claims(self) -> None:
        """Puts back the jobs that were claimed early and that the worker has not taken."""
        ...


class Wakeup:
    """Waits at the queue's marker for one worker, on a connection of its own."""

    def __init__(self, store: RedisStore, keys: Keys, worker: str | None, claimer: EarlyClaimer) -> None:
        self._store = store
        self._keys = keys
        self._claimer = claimer
        self._link = store.blocking(keys.marker, keys.connection_name(worker))
        self._withdrawal: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        """The request to end the wait for a job that has come due."""
        self._taken: Marker | None = None
        self._polls = False
        self.claiming = False
        """True while the command of an early claim is sent and the worker would take its job."""
        self.due_ms: float | None = None
        """The time when the next delayed job is due, if it is known."""

    async def wait(self, timeout: float) -> None:
        """Returns when a job may be ready, at the latest after the timeout or the longest waits above."""
        await self.withdrawn()
        end = time.monotonic() + timeout
        while True:
            now = await self._store.clock.now_ms()
            block = min(end - time.monotonic(), LONGEST_WAIT if self.due_ms is None else LONGEST_WAIT_FOR_DUE)
            if self.due_ms is not None:
                block = min(block, (self.due_ms - now) / 1000)
            if block <= 0:
                break
            if self._polls or block < _SHORTEST_WAIT:
                await asyncio.sleep(min(block, POLL_EVERY))
                break
            timer = None if self.due_ms is None else asyncio.get_running_loop().call_later(block, self._end_wait)
            try:
                marker, claimed = await self._take(block)
            finally:
                if timer is not None:
                    timer.cancel()
            if claimed or marker is None or marker[0] != b"1":
                break
            self.due_ms = marker[1]
        if self.due_ms is not None and self.due_ms <= self._store.clock.last_known_ms():
            self.due_ms = None

    def _end_wait(self) -> None:
        self._ending = asyncio.create_task(self._unblock())

    async def _unblock(self) -> None:
        with suppress(JobwireError, TimeoutError):  # then the wait ends at the server's tick
            await self._link.unblock()

    async def wake_another(self) -> None:
        """Wakes another worker that waits."""
        await self._put_back(_READY)

    async def leave_due(self) -> None:
        """Sets the marker of the next delayed job again, so that another worker wakes when that job is due."""
        if self.due_ms is not None:
            await self._put_back((b"1", self.due_ms))
            self.due_ms = None

    async def _take(self, block: float) -> tuple[Marker | None, bool]:
        """Waits for a marker. Returns the marker, and True if a job was claimed early."""
        await self._ended()
        await self._link.connect(_SLACK)
        can_claim = self._link.can_unblock and self._store.clock.available
        early_claim = self._claimer.early_claim_command() if can_claim else None
        command = ("BZPOPMIN", self._keys.marker, f"{block:.3f}")
        self.claiming, self._taken = early_claim is not None, None
        try:
            try:
                reply = await self._link.call(*command, within=block + _SLACK, then=early_claim or ())
            except JobwireError as error:
                # The server has refused or interrupted the wait, but it has run the early claim behind it.
                if self._link.unanswered and await self._read_early_claim():
                    return None, True
                if self._may_continue(error):
                    return None, False
                raise
            self._taken = _marker_in(reply)
            return self._taken, early_claim is not None and await self._read_early_claim()
        except asyncio.CancelledError:
            if self._link.unanswered:
                self._withdrawal = asyncio.create_task(self._withdraw(early_claim is not None))
            raise
        finally:
            self.claiming = False

    def _may_continue(self, error: JobwireError) -> bool:
        """Returns True if the worker can continue although the wait was answered with this error."""
        if isinstance(error.__cause__, NoPermissionError):
            self._polls = True
            _log.warning(
                "%s: the account may not run BZPOPMIN, so jobs can't wake workers of queue %s. They poll every %g s",
                *(self._store.where, self._keys.queue, POLL_EVERY),
            )
            return True
        return str(error.__cause__).startswith("UNBLOCKED")

    async def _read_early_claim(self) -> bool:
        """Reads the reply to the early claim. Returns True if a job was claimed."""
        try:
            return self._claimer.read_early_claim(await self._link.answer(_SLACK))
        except StoreRefused:
            return (
                False  # the server does not have the script, or the slot has moved: the worker's next claim handles it
            )

    async def _withdraw(self, has_early_claim: bool) -> None:
        """Ends the wait on the server, and puts back the marker or the job that it returned."""
        marker: Marker | None = _READY
        if self._link.can_unblock:
            answers = asyncio.create_task(self._answers(has_early_claim))
            with suppress(JobwireError, TimeoutError):
                async with asyncio.timeout(_WITHDRAWAL):
                    pause = 0.001
                    while not answers.done():
                        # The server may not have received the wait yet, so one request may come too early.
                        await self._link.unblock()
                        await asyncio.wait([answers], timeout=pause)
                        pause = min(2 * pause, 0.1)
                    marker = answers.result()
            answers.cancel()
            await asyncio.wait([answers])
        if self._link.unanswered:
            # The result of the wait is unknown. A marker too many only makes one worker look for jobs.
            await self._link.drop()
        if marker is not None:
            with suppress(JobwireError, TimeoutError):
                async with asyncio.timeout(_WITHDRAWAL):
                    await self._put_back(marker)

    async def _answers(self, has_early_claim: bool) -> Marker | None:
        """Reads the replies of a cancelled wait. Returns its marker, and puts back the job of its early claim."""
        marker = self._taken or _READY
        if self._link.unanswered > has_early_claim:
            try:
                marker = _marker_in(await self._link.answer(_WITHDRAWAL))
            except JobwireError:
                marker = _READY
        if self._link.unanswered and await self._read_early_claim():
            await self._claimer.undo_early_claims()
        return marker

    async def _put_back(self, marker: Marker) -> None:
        # NX: a marker that another client has set meanwhile is newer than the one taken.
        await self._store.call("ZADD", self._keys.marker, "NX", repr(marker[1]), marker[0])

    async def _ended(self) -> None:
        """Returns when the server has handled the request to end a wait: it must not end the next one."""
        if self._ending is not None:
            await asyncio.wait([self._ending])
            self._ending = None

    async def withdrawn(self) -> None:
        """Returns when a cancelled wait has been withdrawn completely."""
        await self._ended()
        if self._withdrawal is not None:
            await asyncio.shield(self._withdrawal)
            self._withdrawal = None

    async def reset(self) -> None:
        """Closes the connection. The next wait opens a new one."""
        await self.withdrawn()
        await self._link.drop()

    async def close(self) -> None:
        """Leaves the markers to other workers, if the server answers in time, and closes the connection."""
        with suppress(JobwireError, TimeoutError):
            async with asyncio.timeout(_CLOSING):
                await self.withdrawn()
                await self.leave_due()
        for unfinished in (self._withdrawal, self._ending):
            if unfinished is not None:
                unfinished.cancel()
                await asyncio.wait([unfinished])
        self._withdrawal = self._ending = None
        await self._link.drop()


def _marker_in(reply: Any) -> Marker | None:
    return None if reply is None else (reply[1], float(reply[2]))
