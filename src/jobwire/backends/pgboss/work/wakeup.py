"""Wakes workers that wait for jobs: one connection listens to notifications for all workers of a process.

pg-boss notifies when a job that may run at once is added to a queue with `notify`. jobwire notifies on a channel of its
own for what pg-boss does not announce. A notification wakes one waiting worker. If that one claims as many jobs as it
can take, it wakes the next, so a burst wakes as many workers as it has jobs for, and a single job wakes one.
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
"""Seconds between two attempts to connect, at most. Meanwhile workers poll, which costs more than an attempt."""


class Wakeup:
    """The waiting workers by queue. A notification that finds none is kept for the next that waits."""

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
        """True if notifications arrive. If not, workers must poll."""
        return self._connected.is_set()

    async def start(self, queue: str) -> None:
        """Starts listening, and waits up to two seconds until notifications arrive. To be called before a worker's
        first claim from the queue. If that claim comes earlier than the notifications, the first wait returns at once,
        since one may have been missed."""
        self._waiters[queue]  # makes the queue known to `_listen_on`
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                await self._connected.wait()
                self._kept.discard(queue)

    def wake_one(self, queue: str) -> None:
        """Wakes one worker that waits for this queue."""
        waiters = self._waiters.get(queue)
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._kept.add(queue)

    def wake_another(self, queue: str) -> None:
        """Wakes another waiting worker, if there is one: there may be more jobs than the caller could take."""
        if self._waiters.get(queue):
            self.wake_one(queue)

    async def wait(self, queue: str, timeout: float) -> bool:
        """Waits for a notification of this queue. Returns False after the timeout."""
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
            if waiter.done() and not waiter.cancelled():  # it was woken at the same moment: wake another instead
                self.wake_one(queue)
            raise
        finally:
            with contextlib.suppress(ValueError):
                self._waiters[queue].remove(waiter)

    def check(self) -> None:
        """Tests the listening connection now, because another connection to this server got no answer."""
        self._probe_now.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _listen(self) -> None:
        """Listens until it is cancelled. Every error counts as an outage, during which workers poll."""
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
                _log.warning("can't listen for new jobs, so workers poll until it works again: %s", reason)
            await asyncio.sleep(min(reconnect_delay(failures), _LONGEST_PAUSE))
            failures += 1

    async def _listen_on(self, connection: PipelinedConnection) -> None:
        connection.listen(self._notified)
        self._probe_now.clear()
        await connection.run([(statement("listen", f'LISTEN "{name}"'), {}) for name in self._channels], _REPLY_WITHIN)
        while True:
            # A worker that waited while no notifications arrived may have missed one.
            if not self.listening:
                self._connected.set()
                for queue in list(self._waiters):
                    self.wake_one(queue)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CHECK_EVERY):
                    await self._probe_now.wait()
                self._connected.clear()
            self._probe_now.clear()
            # The deadline is for the whole probe, not for the time between two messages: notifications may still arrive
            # on a connection on which our own messages get lost.
            async with asyncio.timeout(_REPLY_WITHIN):
                await connection.run([(_PROBE, {})])

    def _notified(self, on_channel: str, queue: str) -> None:
        if on_channel:
            self.wake_one(queue)
        else:
            self._probe_now.set()
