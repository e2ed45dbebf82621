"""Being told of new jobs: one listening connection for all workers of a process, and the workers that sleep on it.

pg-boss rings when a job that may run at once is added to a queue with `notify`. jobwire rings on a channel of its own
for what pg-boss is quiet about. A ring wakes one waiter; if that one finds more jobs than it can take it rings on for
the next, so a burst wakes as many workers as it feeds and a single job wakes one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict, deque

from jobwire.backends.pgboss.connection.pipelined import PipelinedConnection
from jobwire.backends.pgboss.connection.schema import channel, own_channel
from jobwire.backends.pgboss.connection.statements import statement
from jobwire.backoff import reconnect_delay

_log = logging.getLogger("jobwire.pgboss")
_PROBE = statement("still_there", "SELECT 1")
_CHECK_EVERY = 10.0
_REPLY_WITHIN = 5.0
_LONGEST_PAUSE = 5.0
"""Workers look for jobs themselves while the line is down, which costs more than trying to connect."""


class Wakeup:
    """Sleepers by queue. A ring that finds nobody asleep is kept for the next who lies down."""

    def __init__(self, url: str, where: str, schema: str) -> None:
        self._url = url
        self._where = where
        self._channels = channel(schema), own_channel(schema)
        self._waiters: defaultdict[str, deque[asyncio.Future[None]]] = defaultdict(deque)
        self._kept: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self._probe_now = asyncio.Event()

    @property
    def listening(self) -> bool:
        """Whether rings reach us; while they don't, workers must look for themselves."""
        return self._connected.is_set()

    async def start(self) -> None:
        """Start listening, and wait for it a moment: a job added after this is heard of."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                await self._connected.wait()

    def wake_one(self, queue: str) -> None:
        """Wake one who sleeps for this queue."""
        waiters = self._waiters.get(queue)
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._kept.add(queue)

    def wake_another(self, queue: str) -> None:
        """Wake another, if one sleeps: there may be more jobs than the caller could take."""
        if self._waiters.get(queue):
            self.wake_one(queue)

    async def wait(self, queue: str, timeout: float) -> bool:
        """Whether somebody rang before the time was over."""
        if queue in self._kept:
            self._kept.discard(queue)
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[queue].append(waiter)
        try:
            async with asyncio.timeout(timeout):
                await waiter
            return True
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # rung just now: the ring is for another
                self.wake_one(queue)
            raise
        finally:
            with contextlib.suppress(ValueError):
                self._waiters[queue].remove(waiter)

    def check(self) -> None:
        """Ask now whether the line still works: something else of this server does not answer."""
        self._probe_now.set()

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
                connection = await PipelinedConnection.connect(self._url, self._where)
                try:
                    await self._listen_on(connection)
                finally:
                    failures = 0 if self.listening else failures
                    self._connected.clear()
                    connection.close()
            except Exception as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                _log.warning("can't listen for new jobs, looking for them every second instead: %s", reason)
            await asyncio.sleep(min(reconnect_delay(failures), _LONGEST_PAUSE))
            failures += 1

    async def _listen_on(self, connection: PipelinedConnection) -> None:
        connection.listen(self._notified)
        self._probe_now.clear()
        await connection.run([(statement("listen", f'LISTEN "{name}"'), {}) for name in self._channels], _REPLY_WITHIN)
        while True:
            # Whoever slept while rings did not reach us may have missed one.
            if not self.listening:
                self._connected.set()
                for queue in list(self._waiters):
                    self.wake_one(queue)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CHECK_EVERY):
                    await self._probe_now.wait()
                self._connected.clear()
            self._probe_now.clear()
            # As a whole, and not from one sign to the next: rings may go on arriving where questions get lost.
            async with asyncio.timeout(_REPLY_WITHIN):
                await connection.run([(_PROBE, {})])

    def _notified(self, on_channel: str, queue: str) -> None:
        if on_channel:
            self.wake_one(queue)
        else:
            self._probe_now.set()
