"""Waiting for work. Our own producers tell each push on a channel; the spec has no such thing, so for the sake of other
producers the ends of the waiting list are looked at too, 50 ms after the last change at first, then ever less often, at
least once a second.

All waiting workers of a type hear of a push, not one of them: which of them the job is meant for is known to them only.
A worker listens only while it waits, so a busy one does not pile up messages.
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


class Doorbell:
    """One worker's ear at the namespace's channel."""

    def __init__(self, store: RedisStore, scripts: Scripts, keys: Keys, job_type: str) -> None:
        self._scripts = scripts
        self._keys = keys
        self._type = job_type
        self._calls = {job_type.encode(), b"*"}
        self._line = store.blocking(keys.wake, f"{keys.namespace}:wake:{job_type}")
        self._pause = _SHORTEST
        self.seen: bytes | None = None
        """How the queue looked when the worker last claimed."""

    async def wait(self, timeout: float) -> None:
        """Return when something was pushed or has changed, at the latest after the timeout."""
        end = time.monotonic() + timeout
        if timeout <= 0:
            return
        try:
            await self._listen()
            # What was pushed between the last claim and now was told to nobody here.
            while not await self._has_changed():
                left = end - time.monotonic()
                if left <= 0 or await self._rings_within(min(self._pause, left)):
                    break
                self._pause = min(self._pause * 2, _LONGEST)
            await self._stop_listening()
        except BaseException:
            await self._line.drop()
            raise

    async def _has_changed(self) -> bool:
        look: bytes = await self._scripts.run("look", [self._keys.base], [self._type])
        changed = self.seen is not None and look != self.seen
        self.seen = look
        if changed:
            self._pause = _SHORTEST
        return changed

    async def _listen(self) -> None:
        await self._line.call("SUBSCRIBE", self._keys.wake, within=_ANSWER)

    async def _rings_within(self, span: float) -> bool:
        try:
            async with asyncio.timeout(span):
                while True:
                    kind, _, message = await self._line.answer(_LONGEST_SILENCE)
                    if kind == b"message" and message in self._calls:
                        self._pause = _SHORTEST
                        return True
        except TimeoutError:
            return False

    async def _stop_listening(self) -> None:
        """Leave the channel, and read what came before the server knew."""
        reply = await self._line.call("UNSUBSCRIBE", self._keys.wake, within=_ANSWER)
        while reply[0] != b"unsubscribe":
            reply = await self._line.answer(_ANSWER)

    async def reset(self) -> None:
        await self._line.drop()

    async def close(self) -> None:
        await self._line.drop()
