"""Connections to one database that stay open between uses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import psycopg

from jobwire import checks
from jobwire.campaigns.database import DatabaseSettings
from jobwire.campaigns.store.table import Connection
from jobwire.errors import Closed, StoreUnavailable
from jobwire.redact import redact

_ASK_AFTER = 1.0
"""Seconds of rest after which a connection is asked for a sign of life before its next use."""


class Connections:
    """At most `most` connections at once. One that breaks is closed, and the next use opens another."""

    def __init__(self, settings: DatabaseSettings, *, most: int = 4) -> None:
        self.settings = settings
        self._free = asyncio.Semaphore(checks.whole("most", most, minimum=1))
        self._idle: list[tuple[Connection, float]] = []
        self._closed = False

    async def __aenter__(self) -> Self:
        self._closed = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop()[0].close()

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[Connection]:
        """Opens or reuses a connection, which commits each statement by itself. Raises StoreUnavailable if it breaks
        meanwhile: what was not committed is then lost, and of a commit it is not known."""
        async with self._free:
            connection = await self._open()
            try:
                yield connection
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if connection.broken or connection.closed:
                    raise StoreUnavailable(f"the database is unavailable: {redact(str(error)).strip()}") from error
                raise
            finally:
                await self._put_back(connection)

    async def _open(self) -> Connection:
        while self._idle:
            if self._closed:
                raise Closed
            connection, since = self._idle.pop()
            if time.monotonic() - since < _ASK_AFTER or await _answers(connection):
                return connection
        if self._closed:
            raise Closed
        return await self.settings.connect()

    async def _put_back(self, connection: Connection) -> None:
        idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if idle and not (connection.broken or self._closed):
            self._idle.append((connection, time.monotonic()))
        else:
            await connection.close()  # also after a cancellation in the middle of a statement


async def _answers(connection: Connection) -> bool:
    """Returns whether the database answers on the connection. Closes it if not, and if the caller gives up."""
    try:
        await connection.execute("SELECT 1")
    except BaseException as error:
        await connection.close()
        if isinstance(error, psycopg.Error):
            return False
        raise
    return True
