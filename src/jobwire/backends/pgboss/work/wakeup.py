"""Being told of new jobs: one listening connection for all workers of a process, and the workers that sleep on it.

pg-boss rings when a job that may run at once is added to a queue with `notify`. jobwire rings on a channel of its own
for what pg-boss is quiet about. A ring wakes one sleeper; if that one finds more jobs than it can take it rings on for
the next, so a burst wakes as many workers as it feeds and a single job wakes one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict, deque

from jobwire.backends.pgboss.connection.pipelined import Wire
from jobwire.backends.pgboss.connection.schema import channel, own_channel
from jobwire.backends.pgboss.connection.statements import statement
from jobwire.backoff import reconnect_delay

_log = logging.getLogger("jobwire.pgboss")
_ASK = statement("still_there", "SELECT 1")
_CHECK_EVERY = 10.0
_ANSWER_WITHIN = 5.0
_LONGEST_PAUSE = 5.0
"""Workers look for jobs themselves while the line is down, which costs more than trying to connect."""


class Doorbell:
    """Sleepers by queue. A ring that finds nobody asleep is kept for the next who lies down."""

    def __init__(self, url: str, where: str, schema: str) -> None:
        self._url = url
        self._where = where
        self._channels = channel(schema), own_channel(schema)
        self._sleepers: defaultdict[str, deque[asyncio.Future[None]]] = defaultdict(deque)
        self._kept: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self._asked = asyncio.Event()

    @property
    def works(self) -> bool:
        """Whether rings reach us; while they don't, workers must look for themselves."""
        return self._connected.is_set()

    async def answer(self) -> None:
        """Start listening, and wait for it a moment: a job added after this is heard of."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                await self._connected.wait()

    def ring(self, queue: str) -> None:
        """Wake one who sleeps for this queue."""
        sleepers = self._sleepers.get(queue)
        while sleepers:
            sleeper = sleepers.popleft()
            if not sleeper.done():
                sleeper.set_result(None)
                return
        self._kept.add(queue)

    def ring_on(self, queue: str) -> None:
        """Wake another, if one sleeps: there may be more jobs than the caller could take."""
        if self._sleepers.get(queue):
            self.ring(queue)

    async def sleep(self, queue: str, timeout: float) -> bool:
        """Whether somebody rang before the time was over."""
        if queue in self._kept:
            self._kept.discard(queue)
            return True
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers[queue].append(sleeper)
        try:
            async with asyncio.timeout(timeout):
                await sleeper
            return True
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            if sleeper.done() and not sleeper.cancelled():  # rung just now: the ring is for another
                self.ring(queue)
            raise
        finally:
            with contextlib.suppress(ValueError):
                self._sleepers[queue].remove(sleeper)

    def check(self) -> None:
        """Ask now whether the line still works: something else of this server does not answer."""
        self._asked.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _listen(self) -> None:
        """Listen for ever. Whatever goes wrong is an outage: workers look for jobs themselves until it is over."""
        failures = 0
        while True:
            try:
                wire = await Wire.connect(self._url, self._where)
                try:
                    await self._hear(wire)
                finally:
                    failures = 0 if self.works else failures
                    self._connected.clear()
                    wire.close()
            except Exception as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                _log.warning("can't listen for new jobs, looking for them every second instead: %s", reason)
            await asyncio.sleep(min(reconnect_delay(failures), _LONGEST_PAUSE))
            failures += 1

    async def _hear(self, wire: Wire) -> None:
        wire.listen(self._told)
        self._asked.clear()
        await wire.run([(statement("listen", f'LISTEN "{name}"'), {}) for name in self._channels], _ANSWER_WITHIN)
        while True:
            # Whoever slept while rings did not reach us may have missed one.
            if not self.works:
                self._connected.set()
                for queue in list(self._sleepers):
                    self.ring(queue)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CHECK_EVERY):
                    await self._asked.wait()
                self._connected.clear()
            self._asked.clear()
            # As a whole, and not from one sign to the next: rings may go on arriving where questions get lost.
            async with asyncio.timeout(_ANSWER_WITHIN):
                await wire.run([(_ASK, {})])

    def _told(self, heard_on: str, queue: str) -> None:
        if heard_on:
            self.ring(queue)
        else:
            self._asked.set()
