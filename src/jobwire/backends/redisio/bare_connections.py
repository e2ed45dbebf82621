"""Connections that bypass the driver's client, each used for one command after another.

The client's pool, retries, callbacks and packing in Python are most of what a small command costs on our side. Measured
on one EVALSHA: 118 µs through the client, 70 µs here. Packing 350 arguments takes 206 µs in the client and 35 µs here,
with hiredis. The connections themselves are the driver's: it does TLS, login, sentinels and parsing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.exceptions import ResponseError

from jobwire.backends.idle_socket import has_input
from jobwire.backends.redisio.packing import packed


class BareConnections:
    """Connections made by one pool. The one that was used last is used first."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._idle: list[Any] = []

    async def call(self, command: tuple[Any, ...]) -> Any:
        """Sends the command and returns its reply unchanged. Closes the connection on any error but an error reply."""
        connection = await self._take()
        try:
            await connection.send_packed_command([packed(command)], check_health=False)
            reply = await connection.read_response()
        except ResponseError:
            self._idle.append(connection)
            raise
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        self._idle.append(connection)
        return reply

    async def call_all(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Sends the commands together and returns a reply for each: a ResponseError if it was refused."""
        connection = await self._take()
        replies: list[Any] = []
        try:
            await connection.send_packed_command([packed(each) for each in commands], check_health=False)
            for _ in commands:
                try:
                    replies.append(await connection.read_response())
                except ResponseError as refused:
                    replies.append(refused)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        self._idle.append(connection)
        return replies

    async def _take(self) -> Any:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_connected and not is_closed(connection):
                return connection
            await connection.disconnect(nowait=True)
        connection = self._pool.make_connection()
        try:
            await connection.connect()
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection

    async def drop(self) -> None:
        """Closes idle connections. One in use is closed when it fails."""
        while self._idle:
            connection = self._idle.pop()
            await connection.disconnect(nowait=True)


def is_closed(connection: Any) -> bool:
    """Returns True if the server has closed an idle connection, or sent something on it: it then closes it next."""
    writer = connection._writer  # the driver has no public name for it
    return writer is None or writer.is_closing() or has_input(writer.get_extra_info("socket").fileno())
