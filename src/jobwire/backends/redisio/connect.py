"""Connections to a Redis or Valkey server, whichever way the address reaches it.

`RedisStore` is one pool. Its commands are sent once: a command whose reply was lost may have been carried out, so
whether to send it again is the caller's to decide, and the driver's own retries are off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from hiredis import pack_command  # pyright: ignore[reportUnknownVariableType] its stub says too little
from redis.asyncio import ConnectionPool, Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from jobwire import embedded
from jobwire.backends.redisio.failure import reaching
from jobwire.backends.redisio.lines import Lines
from jobwire.errors import InvalidOption, StoreUnavailable
from jobwire.urls import Address

_CONNECTIONS = 32
_PATIENCE = 10.0
"""Seconds to wait for an answer."""
_CONNECT_TIMEOUT = 5.0
# Replies in the form that all servers and driver versions agree on.
_FIXED = {"protocol": 2, "decode_responses": False}


class RedisStore:
    """One server (or cluster) through one pool of connections. `open` before use."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.where = address.redacted
        self.cluster = address.transport == "cluster"
        self.slots = asyncio.Semaphore(_CONNECTIONS)
        """Held while a command is under way, so that a burst of callers queues up here."""
        self.patience = _PATIENCE
        """How long a command may take. Timed here and not by the driver, which does it with `asyncio.wait_for`: that
        costs a task per command, and in Python 3.11 loses the cancellation of its caller now and then."""
        self._client: Any = None
        self._lines: Lines | None = None
        self._sentinels: list[Any] = []
        self._server: embedded.Server | None = None

    async def open(self) -> None:
        """Make the client (and start the server, if it is an embedded one). Idempotent; sends nothing."""
        if self._client is not None:
            return
        if self.address.transport == "embedded":
            self._server = await asyncio.to_thread(embedded.valkey, self.address.folder or embedded.FOLDER)
        try:
            client = self._make_client()
            if not self.cluster:
                client.connection_pool.make_connection()  # connects nothing, but tries the options
        except (TypeError, ValueError) as wrong:
            raise InvalidOption("url", self.where, f"the driver does not take it: {wrong}") from None
        self._use(client)

    @property
    def client(self) -> Any:
        """The driver's own client: errors of its own, replies as the driver shapes them."""
        if self._client is None:
            raise StoreUnavailable(f"{self.where} is not open")
        return self._client

    async def call(self, *command: Any) -> Any:
        """One command, with the driver's usual shape of reply (bytes, not text)."""
        with reaching(self.where):
            async with self.slots, asyncio.timeout(self.patience):
                return await self.client.execute_command(*command)

    async def call_bare(self, *command: Any) -> Any:
        """One command by the shortest way, with the server's bare reply."""
        with reaching(self.where):
            async with self.slots, asyncio.timeout(self.patience):
                if self._lines is None:
                    return await self.client.execute_command(*command)
                return await self._lines.call(command)

    async def calls_bare(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """As call_bare, several commands at once. Each has an answer of its own, a ResponseError if it was refused."""
        with reaching(self.where):
            async with self.slots, asyncio.timeout(self.patience):
                if self._lines is not None:
                    return await self._lines.call_all(commands)
                # They may belong to several servers of the cluster.
                return await asyncio.gather(*map(self._cluster_answer, commands))

    async def _cluster_answer(self, command: tuple[Any, ...]) -> Any:
        try:
            return await self.client.execute_command(*command)
        except ResponseError as refused:
            return refused

    async def calls(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Several commands in one round trip, not in a transaction; one reply each."""
        with reaching(self.where):
            async with self.slots, asyncio.timeout(self.patience):
                pipeline = self.client.pipeline() if self.cluster else self.client.pipeline(transaction=False)
                async with pipeline:
                    for command in commands:
                        pipeline.execute_command(*command)
                    return await pipeline.execute()

    def blocking(self, key: str, name: str) -> BlockingLink:
        """A connection apart from the pool, to the server that holds the key, for commands that block."""
        return BlockingLink(self, key, name)

    async def reset(self) -> None:
        """Drop idle connections: after a failover or a sleep they may be dead without knowing."""
        client = self._client
        if client is None:
            return
        if self._server is not None and self._server.url != self.address.driver_url:
            await self._drop_lines()
            self._use(self._make_client())
            await client.aclose()
        elif self.cluster:
            await client.aclose()
        else:
            await self._drop_lines()
            await client.connection_pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        client, self._client = self._client, None
        await self._drop_lines()
        if client is not None:
            await client.aclose()
            if not self.cluster:
                await client.connection_pool.disconnect()
        for sentinel in self._sentinels:
            await sentinel.aclose()
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.close)

    def _use(self, client: Any) -> None:
        self._client = client
        self._lines = None if self.cluster else Lines(client.connection_pool)

    async def _drop_lines(self) -> None:
        if self._lines is not None:
            await self._lines.drop()

    def _make_client(self) -> Any:
        url = self._server.url if self._server is not None else self.address.driver_url
        options: dict[str, Any] = {"socket_connect_timeout": _CONNECT_TIMEOUT, **parse_url(url), **_FIXED}
        self.patience = options.get("socket_timeout") or _PATIENCE
        options |= {"socket_timeout": None, "retry": Retry(NoBackoff(), 0)}
        if self.address.transport not in ("cluster", "sentinel"):
            return Redis(connection_pool=ConnectionPool(max_connections=2 * _CONNECTIONS, **options))
        options.pop("host", None)
        options.pop("port", None)
        if options.pop("connection_class", None) is SSLConnection:
            options["ssl"] = True
        if self.cluster:
            options.pop("db", None)
            nodes = [ClusterNode(host, port) for host, port in self.address.hosts]
            return RedisCluster(startup_nodes=nodes, **options)
        sentinel: Any = Sentinel(
            list(self.address.hosts), sentinel_kwargs={"socket_timeout": _CONNECT_TIMEOUT}, **options
        )
        # The driver closes the connections to the server with its client, those to the sentinels never.
        self._sentinels = sentinel.sentinels
        return sentinel.master_for(self.address.service)


class BlockingLink:
    """One connection that may wait long for its answer, named so that peers can list it.

    Connects at the first call and again after `drop`. One call at a time.
    """

    def __init__(self, store: RedisStore, key: str, name: str) -> None:
        self._store = store
        self._key = key
        self._name = "".join(char if "!" <= char <= "~" else "-" for char in name)
        self._connection: Any = None
        self._client_id: Any = None
        self._node: Any = None
        self.unanswered = 0
        """Commands that the server has, and whose answers are still to come, by `answer`."""

    async def call(self, *command: Any, within: float, then: tuple[Any, ...] = ()) -> Any:
        """One command; no answer within that many seconds means that the connection is dead.

        `then` is a second command for the server to carry out right after the first, which need not wait for us to
        have heard of that; its answer comes by `answer`.
        """
        with reaching(self._store.where):
            try:
                async with asyncio.timeout(within):
                    connection = self._connection or await self._connect()
                    commands = [command, then] if then else [command]
                    await connection.send_packed_command([pack_command(each) for each in commands], check_health=False)
                    self.unanswered = len(commands)
            except BaseException:
                await self.drop()
                raise
        return await self.answer(within)

    async def answer(self, within: float) -> Any:
        """The next answer that is due. Cancelled, it leaves the connection as it is."""
        connection = self._connection
        limit = asyncio.timeout(within)
        with reaching(self._store.where):
            try:
                async with limit:
                    reply = await connection.read_response(disconnect_on_error=False)
            except ResponseError:
                self.unanswered -= 1
                raise
            except asyncio.CancelledError:
                raise
            except BaseException:
                await self.drop()
                raise
        self.unanswered -= 1
        return reply

    async def unblock(self) -> None:
        """Make the server answer the blocked command at once, as if its time were up."""
        if self._client_id is not None:
            command = ("CLIENT", "UNBLOCK", self._client_id)
            with reaching(self._store.where):
                if self._node is not None:
                    await self._node.execute_command(*command)
                else:
                    await self._store.client.execute_command(*command)

    async def drop(self) -> None:
        """Close the connection, whatever is under way on it."""
        connection, self._connection, self._client_id = self._connection, None, None
        self.unanswered = 0
        if connection is not None:
            await connection.disconnect(nowait=True)

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
        await connection.connect()
        for command in (("CLIENT", "SETNAME", self._name), ("CLIENT", "ID")):
            await connection.send_command(*command)
            self._client_id = await connection.read_response()
        return connection
