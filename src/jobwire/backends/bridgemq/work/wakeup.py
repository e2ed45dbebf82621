"""Waits for jobs. jobwire's producers publish each push on a channel. The spec has no such channel, so because of other
producers the queue is also checked: 50 ms after the last change at first, then less and less often, at least once a
second.

A push wakes all waiting workers of a type and not only one: the server can't decide which of them the job admits. A
worker is subscribed only while it waits, so messages don't pile up for a busy one.
"""

from __future__ import annotations

import asyncio
import time

from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.scripts import Scripts

_SHORTEST, _LONGEST = 0.05, 1.0
_ANSWER = 5.0
_LONGEST_SILENCE = 3600.0


class Wakeup:
    """Subscribes one worker to the namespace's wakeup channel."""

    def __init__(self, store: RedisStore, scripts: Scripts, keys: Keys, job_type: str) -> None:
        self._scripts = scripts
        self._keys = keys
        self._type = job_type
        self._messages = {job_type.encode(), b"*"}
        self._link = store.blocking(keys.wake, f"{keys.namespace}:wake:{job_type}")
        self._pause = _SHORTEST
        self.seen: bytes | None = None
        """The text of `lib/look.lua` at the worker's last claim."""

    async def wait(self, timeout: float) -> None:
        """Returns when a job was pushed or the queue has changed, at the latest after the timeout."""
        end = time.monotonic() + timeout
        if timeout <= 0:
            return
        try:
            await self._listen()
            # A push between the last claim and the subscription sent no message to this worker, so check first.
            while not await self._has_changed():
                left = end - time.monotonic()
                if left <= 0 or await self._woken_within(min(self._pause, left)):
                    break
                self._pause = min(self._pause * 2, _LONGEST)
            await self._stop_listening()
        except BaseException:
            await self._link.drop()
            raise

    async def _has_changed(self) -> bool:
        look: bytes = await self._scripts.run("look", [self._keys.base], [self._type])
        changed = self.seen is not None and look != self.seen
        self.seen = look
        if changed:
            self._pause = _SHORTEST
        return changed

    async def _listen(self) -> None:
        await self._link.call("SUBSCRIBE", self._keys.wake, within=_ANSWER)

    async def _woken_within(self, span: float) -> bool:
        try:
            async with asyncio.timeout(span):
                while True:
                    kind, _, message = await self._link.answer(_LONGEST_SILENCE)
                    if kind == b"message" and message in self._messages:
                        self._pause = _SHORTEST
                        return True
        except TimeoutError:
            return False

    async def _stop_listening(self) -> None:
        """Unsubscribes, and reads the messages that the server sent before it."""
        reply = await self._link.call("UNSUBSCRIBE", self._keys.wake, within=_ANSWER)
        while reply[0] != b"unsubscribe":
            reply = await self._link.answer(_ANSWER)

    async def reset(self) -> None:
        await self._link.drop()

    async def close(self) -> None:
        await self._link.drop()
