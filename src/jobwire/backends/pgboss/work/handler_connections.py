"""Connections for handlers: what is written on one commits with the job's completion, or not at all.

Such a connection is already in a transaction, so the driver's own `transaction()` blocks are savepoints in it, and it
refuses to be committed, rolled back or closed by the handler. A plain function gets a blocking connection. Its thread
can't be stopped when the claim is lost, so that connection is then closed and never used again.
"""

from __future__ import annotations

import asyncio
import os
import socket
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg.rows import tuple_row

from jobwire.backends.pgboss.address import parameters
from jobwire.backends.pgboss.connection.errors import failure, sqlstate_of
from jobwire.backends.pgboss.connection.pipelined import CALL_WITHIN
from jobwire.errors import WrongState

_KEPT = 10
_IDLE = 10.0
"""Seconds after which a connection that no handler has asked for is closed."""
_LAST_CALL = 5.0
"""Seconds that a thread's last statement may take to notice that its connection is closed."""


def _refuse(action: str) -> WrongState:
    return WrongState(f"a job's connection can't be {action} by its handler: return to commit, raise to roll back")


class LentConnection(psycopg.AsyncConnection[Any]):
    """A connection for a handler that is a coroutine."""

    lent = False

    async def commit(self) -> None:
        if self.lent:
            raise _refuse("committed")
        await super().commit()

    async def rollback(self) -> None:
        if self.lent:
            raise _refuse("rolled back")
        await super().rollback()

    async def close(self) -> None:
        if self.lent:
            raise _refuse("closed")
        await super().close()

    async def __aenter__(self) -> Self:
        raise _refuse("entered, and so closed,")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise _refuse("left, and so closed,")


class BlockingLentConnection(psycopg.Connection[Any]):
    """A connection for a handler that is a plain function in a thread."""

    lent = False

    def commit(self) -> None:
        if self.lent:
            raise _refuse("committed")
        super().commit()

    def rollback(self) -> None:
        if self.lent:
            raise _refuse("rolled back")
        super().rollback()

    def close(self) -> None:
        if self.lent:
            raise _refuse("closed")
        super().close()

    def __enter__(self) -> Self:
        raise _refuse("entered, and so closed,")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise _refuse("left, and so closed,")


Lent = LentConnection | BlockingLentConnection


class Lending:
    """The connections of one store that handlers use, and idle ones for the next handlers."""

    def __init__(self, where: str) -> None:
        self.within = CALL_WITHIN
        """Seconds that BEGIN, COMMIT or ROLLBACK may take."""
        self._where = where
        self._idle: list[Lent] = []
        self._used: set[Lent] = set()
        """Those that a handler has used since `_sweep` last looked."""
        self._sweeping: asyncio.Task[None] | None = None
        self._resets = 0
        self._out: dict[Lent, int] = {}
        """Those that handlers have, each with the number of resets before that. One from before the last reset is not
        kept."""

    async def lend(self, url: str, *, blocking: bool) -> Lent:
        """Returns a connection in a transaction that has begun."""
        age = self._resets
        while True:
            fitting = [one for one in self._idle if isinstance(one, BlockingLentConnection) is blocking]
            kept = fitting[-1] if fitting else None
            if kept is not None:
                self._idle.remove(kept)
            try:
                connection = kept or await _connect(url, blocking=blocking)
            except (psycopg.Error, OSError) as error:
                raise failure(self._where, str(error), sqlstate_of(error)) from None
            try:
                async with asyncio.timeout(self.within):
                    await _begin(connection)
            except (psycopg.Error, OSError) as error:
                await _close(connection)
                if kept is None:
                    raise failure(self._where, str(error), sqlstate_of(error)) from None
                continue  # it broke while it was idle
            except BaseException:
                await _close(connection)
                raise
            connection.lent = True
            self._used.add(connection)
            self._out[connection] = age
            return connection

    async def commit(self, connection: Lent) -> None:
        """Commits what was written on it, and keeps it for the next handler. Raises TimeoutError if that takes too
        long."""
        connection.lent = False
        async with asyncio.timeout(self.within):
            if isinstance(connection, LentConnection):
                await connection.commit()
            else:
                await asyncio.to_thread(connection.commit)
        await self._keep(connection)

    async def roll_back(self, connection: Lent) -> None:
        """Rolls back what was written on it. Its handler must have ended, unless that is a thread."""
        if isinstance(connection, LentConnection):
            connection.lent = False
            try:
                async with asyncio.timeout(self.within):
                    await connection.rollback()
            except (psycopg.Error, TimeoutError):
                await self.drop(connection)
            except BaseException:
                await self.drop(connection)
                raise
            else:
                await self._keep(connection)
        else:
            await self.drop(connection)

    async def drop(self, connection: Lent) -> None:
        """Closes the connection, even while a statement runs on it. The server rolls back what was not committed."""
        self._out.pop(connection, None)
        connection.lent = False
        await _close(connection)

    async def reset(self) -> None:
        """Closes idle connections, and marks those that handlers have, so that they are closed afterwards."""
        self._resets += 1
        idle, self._idle = self._idle, []
        for connection in idle:
            await _close(connection)

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait([self._sweeping])
        await self.reset()
        for connection in list(self._out):
            await self.drop(connection)

    async def _keep(self, connection: Lent) -> None:
        fresh = self._out.pop(connection, None) == self._resets
        # A handler may have changed settings that the next one relies on.
        clean = not connection.closed and not connection.autocommit and connection.row_factory is tuple_row
        if fresh and clean and len(self._idle) < _KEPT:
            self._idle.append(connection)
            if self._sweeping is None or self._sweeping.done():
                self._sweeping = asyncio.create_task(self._sweep())
        else:
            await _close(connection)

    async def _sweep(self) -> None:
        """Closes connections that were idle for a whole period. The one that came back last is used first, so the
        others stay idle."""
        while self._idle:
            before = list(self._idle)
            self._used.clear()
            await asyncio.sleep(_IDLE)
            for connection in before:
                if connection in self._idle and connection not in self._used:
                    self._idle.remove(connection)
                    await _close(connection)


async def _connect(url: str, *, blocking: bool) -> Lent:
    if blocking:
        return await asyncio.to_thread(BlockingLentConnection.connect, **parameters(url))
    return await LentConnection.connect(**parameters(url))


async def _begin(connection: Lent) -> None:
    if isinstance(connection, LentConnection):
        await connection.execute("SELECT")
    else:
        await asyncio.to_thread(connection.execute, "SELECT")


async def _close(connection: Lent) -> None:
    if isinstance(connection, LentConnection):
        await connection.close()
    elif not connection.closed:
        _cut(connection)
        await asyncio.to_thread(_close_after_last_call, connection)


def _cut(connection: BlockingLentConnection) -> None:
    """Shuts both directions of the socket down, through a duplicate: another thread may be waiting on it."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        try:
            line.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # closed already


def _close_after_last_call(connection: BlockingLentConnection) -> None:
    if connection.lock.acquire(timeout=_LAST_CALL):
        try:
            connection.close()
        finally:
            connection.lock.release()
