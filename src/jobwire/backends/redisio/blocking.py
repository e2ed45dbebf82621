"""A connection outside the pool, for commands that block on the server."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import NoPermissionError, ResponseError

from jobwire.backends.redisio.errors import translated_errors
from jobwire.backends.redisio.packing import packed

if TYPE_CHECKING:
    from jobwire.backends.redisio.connect import RedisStore

_log = logging.getLogger("jobwire.redis")
_UNBLOCK_TIMEOUT = 2.0


class BlockingLink:
    """One connection for blocking commands. It has a name, so that peers can list it.

    Connects at the first call and again after `drop`. `drop` may be called at any time: a call in progress then raises
    StoreUnavailable. Allows one call at a time.
    """

    def __init__(self, store: RedisStore, key: str, name: str) -> None:
        self._store = store
        self._key = key
        self._name = "".join(char if "!" <= char <= "~" else "-" for char in name)
        self._connection: Any = None
        self._client_id: Any = None
        self._node: Any = None
        self.can_unblock = True
        """False once the server has refused CLIENT to this account, so that a blocked command can't be ended early."""
        self.unanswered = 0
        """Number of commands that were sent and not answered yet. `answer` reads the next reply."""

    async def connect(self, within: float) -> None:
        """Connects now and not at the first call, so that `can_unblock` is known."""
        with translated_errors(self._store.where):
            await self._connected(within)

    async def call(self, *command: Any, within: float, then: tuple[Any, ...] = ()) -> Any:
        """Sends one command and returns its reply. Closes the connection if there is none within `within` seconds.

        `then` is a second command, sent with the first, so that the server runs it without another round trip. Read its
        reply with `answer`, also if the first command was refused.
        """
        commands = [command, then] if then else [command]
        with translated_errors(self._store.where):
            connection = await self._connected(within)
            try:
                async with asyncio.timeout(within):
                    await connection.send_packed_command([packed(each) for each in commands], check_health=False)
                self._check_not_dropped(connection)
                self.unanswered = len(commands)
            except BaseException:
                await self.drop()
                raise
        return await self.answer(within)

    async def answer(self, within: float) -> Any:
        """Returns the next reply. If it is cancelled, the connection stays open and the reply can be read later."""
        connection = self._connection
        with translated_errors(self._store.where):
            self._check_not_dropped(connection)
            try:
                async with asyncio.timeout(within):
                    reply = await connection.read_response(disconnect_on_error=False)
            except ResponseError:
                self.unanswered -= 1
                raise
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                dropped = self._connection is not connection
                await self.drop()
                if dropped:
                    # The driver may raise any error when its connection is closed during a read.
                    raise NoConnection("the connection was dropped") from error
                raise
        self.unanswered -= 1
        return reply

    async def unblock(self) -> None:
        """Makes the server answer the blocked command at once, as if it had timed out."""
        if self._client_id is not None:
            command = ("CLIENT", "UNBLOCK", self._client_id)
            client = self._node if self._node is not None else self._store.client
            with translated_errors(self._store.where):
                async with asyncio.timeout(_UNBLOCK_TIMEOUT):
                    await client.execute_command(*command)

    async def drop(self) -> None:
        """Closes the connection, also while a call is in progress."""
        connection, self._connection, self._client_id = self._connection, None, None
        self.unanswered = 0
        if connection is not None:
            await connection.disconnect(nowait=True)

    def _check_not_dropped(self, connection: Any) -> None:
        """Raises if the connection was dropped meanwhile: the driver would reconnect by itself."""
        if connection is None or self._connection is not connection:
            raise NoConnection("the connection was dropped")

    async def _connected(self, within: float) -> Any:
        if self._connection is not None:
            return self._connection
        try:
            async with asyncio.timeout(within):
                return await self._connect()
        except BaseException:
            await self.drop()
            raise

    async def _connect(self) -> Any:
        client = self._store.client
        if self._store.cluster:
            await client.initialize()
            self._node = client.get_node_from_key(self._key)
            maker, options = self._node.connection_class, self._node.connection_kwargs
        else:
            maker, options = client.connection_pool.connection_class, client.connection_pool.connection_kwargs
        connection = maker(**{**options, "socket_timeout": None})
        self._connection = connection
        try:
            await connection.connect()
            if self.can_unblock:
                await self._set_name(connection)
            self._check_not_dropped(connection)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection

    async def _set_name(self, connection: Any) -> None:
        """Sets the connection's name and reads its client id."""
        try:
            for command in (("CLIENT", "SETNAME", self._name), ("CLIENT", "ID")):
                await connection.send_command(*command)
                self._client_id = await connection.read_response()
        except NoPermissionError:
            self.can_unblock, self._client_id = False, None
            _log.warning(
                "%s: the account may not run CLIENT. Peers can't list this worker, and it claims a job only after a "
                "wait has ended; allow CLIENT SETNAME, ID and UNBLOCK to change that",
                self._store.where,
            )
