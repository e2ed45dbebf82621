"""The connections of one event loop to one server: few at rest, more under load.

A call that finds every connection busy waits for one to come back. Another connection is made only when one caller has
waited for long, or all of them together for a while. So the workers of a process that look at their queues at the same
moment share one connection, and two lanes under load soon have two. Connections that the load of the last period did
not need are closed.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Sequence

from jobwire.backends.pgboss.connection.errors import failure
from jobwire.backends.pgboss.connection.pipelined import CALL_WITHIN, Call, PipelinedConnection
from jobwire.backends.pgboss.connection.rows import Row

_MOST = 10
_LONG_WAIT = 0.1
"""Seconds that one caller waits before another connection is made."""
_CROWDED = 0.1
"""Seconds that all callers together wait before another connection is made."""
_FORGIVEN = 0.1
"""Seconds that are taken off that sum in each second."""
_LOOK_EVERY = 0.02
_PERIOD = 10.0
"""Seconds over which the use of the connections is measured."""
_ROOM = 1.5
"""Connections that are kept for each one that was busy all the time. The last one is always kept."""


class Pool:
    """Gives connections to callers, and makes and closes them as the load asks for."""

    def __init__(self, url: str, where: str) -> None:
        self.within = CALL_WITHIN
        """Seconds without an answer of the server after which a call fails."""
        self._url = url
        self._where = where
        self._loop = asyncio.get_running_loop()
        self._idle: list[PipelinedConnection] = []
        self._busy = 0
        self._worked = 0.0
        self._waiters: deque[tuple[asyncio.Future[PipelinedConnection | None], float]] = deque()
        self._crowded = 0.0
        self._crowded_at = 0.0
        self._growth: asyncio.TimerHandle | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._epoch = 0
        self._closed = False

    async def run(self, calls: Sequence[Call], within: float | None = None) -> list[list[Row]]:
        """Runs the statements as one transaction in one round trip. Returns the rows of each."""
        connection = self._pop() or await self._obtain()
        try:
            return await connection.run(calls, within or self.within)
        finally:
            self.give(connection)

    async def take(self) -> PipelinedConnection:
        """Returns a connection for the caller alone, who must `give` it back."""
        return self._pop() or await self._obtain()

    def give(self, connection: PipelinedConnection) -> None:
        """Takes a connection back and passes it to the first caller that waits for one."""
        if connection.silent:
            self.reset()  # the others were made at the same time and over the same network
        if self._closed or connection.epoch != self._epoch or not connection.reusable:
            connection.close()
            self._leave()
            return
        now = self._loop.time()
        self._worked += now - connection.taken
        connection.taken = now
        if not self._offer(connection):
            self._busy -= 1
            self._idle.append(connection)
            if self._sweeper is None:
                self._plan_sweep()

    def reset(self) -> None:
        """Closes every connection: idle ones at once, the others when they are given back."""
        self._epoch += 1
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        self._closed = True
        self.reset()
        for timer in (self._growth, self._sweeper):
            if timer is not None:
                timer.cancel()
        self._growth = self._sweeper = None

    # --- getting one ------------------------------------------------------------------------------------------------

    def _pop(self) -> PipelinedConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.broken and not connection.closing:
                self._busy += 1
                connection.taken = self._loop.time()
                return connection
            connection.close()
        return None

    async def _obtain(self) -> PipelinedConnection:
        if self._busy:
            connection = await self._wait()
            if connection is not None:
                return connection
        self._busy += 1
        try:
            connection = await PipelinedConnection.connect(self._url, self._where)
        except BaseException:
            self._leave()
            raise
        connection.epoch = self._epoch
        connection.taken = self._loop.time()
        return connection

    def _leave(self) -> None:
        """Counts one connection less, and lets a caller that waits for it make another."""
        self._busy -= 1
        self._offer(None)

    def _offer(self, connection: PipelinedConnection | None) -> bool:
        while self._waiters:
            waiter, _ = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return True
        return False

    async def _wait(self) -> PipelinedConnection | None:
        """Waits for a connection that comes back. Returns None if the caller should make one."""
        waiter: asyncio.Future[PipelinedConnection | None] = self._loop.create_future()
        self._waiters.append((waiter, self._loop.time()))
        if self._growth is None:
            self._plan_growth()
        try:
            async with asyncio.timeout(self.within):
                try:
                    return await waiter
                except asyncio.CancelledError:
                    if waiter.done() and not waiter.cancelled():  # it has just been given to this caller: pass it on
                        self._hand_on(waiter.result())
                    raise
        except TimeoutError:
            raise failure(self._where, f"no connection came free within {self.within:g} s") from None

    def _hand_on(self, connection: PipelinedConnection | None) -> None:
        if connection is not None:
            self.give(connection)
        else:
            self._offer(None)

    # --- more of them, fewer of them --------------------------------------------------------------------------------

    def _plan_growth(self) -> None:
        now = self._loop.time()
        self._crowded = max(self._crowded - _FORGIVEN * (now - self._crowded_at), 0.0)
        self._crowded_at = now
        self._growth = self._loop.call_later(_LOOK_EVERY, self._grow)

    def _grow(self) -> None:
        """Lets a caller make a connection if the callers have waited for too long."""
        self._growth = None
        now = self._loop.time()
        self._crowded += now - self._crowded_at
        self._crowded_at = now
        if self._waiters and self._busy < _MOST:
            too_long = now - self._waiters[0][1] >= _LONG_WAIT
            if too_long or self._crowded >= _CROWDED:
                self._crowded = 0.0
                self._offer(None)
        if self._waiters:
            self._plan_growth()

    def _plan_sweep(self) -> None:
        if len(self._idle) + self._busy > 1:
            self._worked = 0.0
            self._sweeper = self._loop.call_later(_PERIOD, self._sweep)

    def _sweep(self) -> None:
        """Closes the connections that the load of the last period did not need."""
        self._sweeper = None
        keep = max(1, math.ceil(_ROOM * self._worked / _PERIOD))
        while self._idle and len(self._idle) + self._busy > keep:
            self._idle.pop(0).close()
        self._plan_sweep()
