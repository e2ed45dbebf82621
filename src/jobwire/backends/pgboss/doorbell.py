"""Being told of new jobs: one listening connection per backend, and the workers that sleep on it.

pg-boss rings when a job that may run at once is added to a queue with `notify`. jobwire rings on a channel of its own
for what pg-boss is quiet about. A ring wakes one sleeper; if that one finds more jobs than it can take it rings on for
the next, so a burst wakes as many workers as it feeds and a single job wakes one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict, deque

from jobwire.backends.pgboss.schema import channel, own_channel
from jobwire.backends.pgboss.statements import statement
from jobwire.backends.pgboss.store import Store
from jobwire.backends.pgboss.wire import Wire
from jobwire.backoff import reconnect_delay
from jobwire.errors import JobwireError

_log = logging.getLogger("jobwire.pgboss")
_ASK = statement("still_there", "SELECT 1")
_CHECK_EVERY = 20.0


class Doorbell:
    """Sleepers by queue. A ring that finds nobody asleep is kept for the next who lies down."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sleepers: defaultdict[str, deque[asyncio.Future[None]]] = defaultdict(deque)
        self._kept: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self._cut = asyncio.Event()

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

    def hang_up(self) -> None:
        """The line may be dead: take another."""
        self._cut.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _listen(self) -> None:
        failures = 0
        while True:
            try:
                wire = await Wire.connect(self._store.url, self._store.where)
            except JobwireError as error:
                _log.warning("can't listen for new jobs, looking for them instead: %s", error)
                await asyncio.sleep(reconnect_delay(failures))
                failures += 1
                continue
            try:
                await self._hear(wire)
                failures = 0
            except JobwireError as error:
                _log.warning("lost the line on which new jobs are told: %s", error)
            finally:
                self._connected.clear()
                wire.close()
            await asyncio.sleep(reconnect_delay(failures))

    async def _hear(self, wire: Wire) -> None:
        names = channel(self._store.name), own_channel(self._store.name)
        self._cut.clear()
        wire.listen(self._told)
        await wire.run([(statement("listen", f'LISTEN "{name}"'), {}) for name in names])
        # Whoever slept while nobody listened may have missed a ring.
        self._connected.set()
        for queue in list(self._sleepers):
            self.ring(queue)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CHECK_EVERY):
                    await self._cut.wait()
                return
            async with asyncio.timeout(_CHECK_EVERY):
                await wire.run([(_ASK, {})])

    def _told(self, heard_on: str, queue: str) -> None:
        if heard_on:
            self.ring(queue)
        else:
            self._cut.set()
