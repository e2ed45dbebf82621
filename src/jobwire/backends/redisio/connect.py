"""Connections to Redis or Valkey: a single server, a unix socket, sentinels or a cluster.

`RedisStore` is one pool. It sends each command once, and the driver's own retries are off: a command whose reply was
lost may have been executed, so the caller decides whether to send it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import socket
from collections.abc import Sequence
from typing import Any

from redis.asyncio import ConnectionPool, Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import (
    URL_QUERY_ARGUMENT_PARSERS,
    AbstractConnection,
    Connection,
    SSLConnection,
    parse_url,
)
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from jobwire import embedded
from jobwire.backends.redisio.bare_connections import BareConnections, is_closed
from jobwire.backends.redisio.blocking import BlockingLink
from jobwire.backends.redisio.client_settings import ClientSettings
from jobwire.backends.redisio.clock import ServerClock
from jobwire.backends.redisio.errors import translated_errors
from jobwire.errors import InvalidOption, StoreUnavailable
from jobwire.url_options import SENTINELS_OWN
from jobwire.urls import Address, check_driver_options

_CONNECTIONS = 32
_REPLY_TIMEOUT = 10.0
"""Seconds to wait for a reply."""
_CONNECT_TIMEOUT = 5.0
_CLOSING_TIMEOUT = 2.0
"""Seconds for closing connections cleanly. After that the operating system closes them."""
_GIVE_UP_MS = 30_000
"""Time after which the operating system ends a connection whose peer does not acknowledge what was sent."""
_KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": _GIVE_UP_MS}
"""Keepalive, where the system supports it: a connection that is silent and unreachable for half a minute is closed."""
# The form of replies that all servers and driver versions support.
_FIXED = {"protocol": 2, "decode_responses": False}
_NOT_IN_A_URL = {"self", "kwargs", "connection_kwargs", "host", "port", "startup_nodes", "url"}


def check_url(address: Address) -> None:
    """Refuses URL options that the driver does not have, and values that it can't parse."""
    if address.driver_url:
        takers: list[Any] = [AbstractConnection, Connection, SSLConnection]
        takers.append(RedisCluster if address.transport == "cluster" else ConnectionPool)
        known = {name for taker in takers for name in inspect.signature(taker.__init__).parameters}
        known |= set(SENTINELS_OWN) if address.transport == "sentinel" else set()
        check_driver_options(address, (known - _NOT_IN_A_URL).union(URL_QUERY_ARGUMENT_PARSERS))
        try:
            parse_url(address.driver_url)
        except ValueError as error:
            raise InvalidOption("url", address.redacted, str(error)) from None


class RedisStore:
    """One server or cluster, through one pool of connections. Call `open` before use."""

    def __init__(self, address: Address) -> None:
        check_url(address)
        self.address = address
        self.where = address.redacted
        self.cluster = address.transport == "cluster"
        self.slots = asyncio.Semaphore(_CONNECTIONS)
        """Held during each command, so that a burst of callers waits here and not in the driver."""
        self.reply_timeout = _REPLY_TIMEOUT
        """Seconds that a command may take. Timed here because the driver uses `asyncio.wait_for`: that costs a task per
        command, and in Python 3.11 it sometimes swallows the caller's cancellation."""
        self.clock = ServerClock(self.where, self._ask_time)
        """The server's time, which all its clients share."""
        self._client: Any = None
        self._bare: BareConnections | None = None
        self._sentinels: list[Any] = []
        self._server: embedded.Server | None = None

    async def open(self) -> None:
        """Makes the client, and starts the server if it is embedded. Idempotent. Sends nothing."""
        if self._client is not None:
            return
        if self.address.transport == "embedded":
            self._server = await asyncio.to_thread(embedded.valkey, self.address.folder or embedded.FOLDER)
        try:
            client = self._make_client()
            if not self.cluster:
                client.connection_pool.make_connection()  # does not connect, but checks the options
        except (TypeError, ValueError) as wrong:
            raise InvalidOption("url", self.where, f"is refused by the driver: {wrong}") from None
        self._use(client)

    @property
    def client(self) -> Any:
        """The driver's client. It raises the driver's errors and returns replies in the driver's form."""
        if self._client is None:
            raise StoreUnavailable(f"{self.where} is not open")
        return self._client

    async def call(self, *command: Any) -> Any:
        """Sends one command and returns the reply in the driver's form (bytes, not text)."""
        with translated_errors(self.where):
            async with self.slots, asyncio.timeout(self.reply_timeout):
                return await self.client.execute_command(*command)

    async def call_bare(self, *command: Any) -> Any:
        """Sends one command without the driver's client and returns the server's reply unchanged."""
        with translated_errors(self.where):
            async with self.slots, asyncio.timeout(self.reply_timeout):
                if self._bare is None:
                    await self._drop_closed()
                    return await self.client.execute_command(*command)
                return await self._bare.call(command)

    async def calls_bare(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Sends several commands as `call_bare` does, together. Returns a reply for each: a ResponseError if it was
        refused."""
        with translated_errors(self.where):
            async with self.slots, asyncio.timeout(self.reply_timeout):
                if self._bare is not None:
                    return await self._bare.call_all(commands)
                await self._drop_closed()
                # Their keys may be on several nodes of the cluster.
                return await asyncio.gather(*map(self._cluster_answer, commands))

    async def _ask_time(self) -> Any:
        with translated_errors(self.where):
            async with self.slots, asyncio.timeout(self.reply_timeout):
                if self._bare is not None:
                    return await self._bare.call(("TIME",))
                await self.client.initialize()
                await self._drop_closed()
                return await self.client.execute_command("TIME", target_nodes=self.client.get_default_node())

    async def _drop_closed(self) -> None:
        """Closes the idle connections of a cluster that a node has closed. The driver then makes new ones. By itself it
        notices only when a command has failed, and the command may be an add that must not be sent twice."""
        for node in self.client.get_nodes():
            for connection in tuple(node._free):
                if connection.is_connected and is_closed(connection):
                    await connection.disconnect(nowait=True)

    async def _cluster_answer(self, command: tuple[Any, ...]) -> Any:
        try:
            return await self.client.execute_command(*command)
        except ResponseError as refused:
            return refused

    async def calls(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Sends several commands in one round trip, not in a transaction. Returns a reply for each."""
        with translated_errors(self.where):
            async with self.slots, asyncio.timeout(self.reply_timeout):
                pipeline = self.client.pipeline() if self.cluster else self.client.pipeline(transaction=False)
                async with pipeline:
                    for command in commands:
                        pipeline.execute_command(*command)
                    return await pipeline.execute()

    def blocking(self, key: str, name: str) -> BlockingLink:
        """Returns a connection outside the pool, to the server that holds the key, for commands that block."""
        return BlockingLink(self, key, name)

    async def reset(self) -> None:
        """Closes idle connections: after a failover or a suspend they may be broken without looking so."""
        client = self._client
        if client is None:
            return
        self.clock.forget()
        with translated_errors(self.where):
            async with asyncio.timeout(_CLOSING_TIMEOUT):
                await self._renew(client)

    async def _renew(self, client: Any) -> None:
        if self._server is not None and self._server.url != self.address.driver_url:
            await self._drop_bare()
            self._use(self._make_client())
            await client.aclose()
        elif self.cluster:
            await client.aclose()
        else:
            await self._drop_bare()
            await client.connection_pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        client, self._client = self._client, None
        with contextlib.suppress(RedisError, OSError, TimeoutError):  # nothing is left to send on them
            async with asyncio.timeout(_CLOSING_TIMEOUT):
                await self._drop_bare()
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
        self._bare = None if self.cluster else BareConnections(client.connection_pool)

    async def _drop_bare(self) -> None:
        if self._bare is not None:
            await self._bare.drop()

    def _make_client(self) -> Any:
        copied: ClientSettings | None = self.address.client
        url = self._server.url if self._server is not None else self.address.driver_url
        given = parse_url(url) if copied is None else copied.options
        options: dict[str, Any] = {"socket_connect_timeout": _CONNECT_TIMEOUT, **given, **_FIXED}
        if copied is None and given.get("connection_class") is SSLConnection:
            # Drivers before version 6 do not compare the name by themselves.
            options.setdefault("ssl_check_hostname", given.get("ssl_cert_reqs") != "none")
        watchers = {name: options.pop(f"sentinel_{name}", None) for name in ("username", "password", "tls")}
        # Not for a unix socket, which is given by its path.
        if "path" not in options and options.setdefault("socket_keepalive", True):
            options.setdefault("socket_keepalive_options", _keepalive_options())
        self.reply_timeout = options.get("socket_timeout") or _REPLY_TIMEOUT
        options |= {"socket_timeout": None, "retry": Retry(NoBackoff(), 0)}
        if self.address.transport not in ("cluster", "sentinel"):
            return Redis(connection_pool=ConnectionPool(max_connections=2 * _CONNECTIONS, **options))
        options.pop("host", None)
        options.pop("port", None)
        certificates = {name: options.pop(name) for name in list(options) if name.startswith("ssl_")}
        if options.pop("connection_class", None) is SSLConnection:
            options |= {"ssl": True, **certificates}
        if self.cluster:
            options.pop("db", None)
            nodes = [ClusterNode(host, port) for host, port in self.address.hosts]
            return RedisCluster(startup_nodes=nodes, **options, **(copied.cluster if copied is not None else {}))
        about_sentinels = {
            "socket_timeout": _CONNECT_TIMEOUT,
            "socket_connect_timeout": _CONNECT_TIMEOUT,
            "username": watchers["username"],
            "password": watchers["password"],
        }
        if watchers["tls"] == "true":
            about_sentinels |= {"ssl": True, **certificates}
        more: dict[str, Any] = {}
        if copied is not None:
            more = dict(copied.sentinel)
            about_sentinels |= more.pop("sentinel_kwargs")
        sentinel: Any = Sentinel(list(self.address.hosts), sentinel_kwargs=about_sentinels, **more, **options)
        # The driver closes the connections to the server with its client, but never those to the sentinels.
        self._sentinels = sentinel.sentinels
        return sentinel.master_for(self.address.service)


def _keepalive_options() -> dict[int, int]:
    return {getattr(socket, name): value for name, value in _KEEPALIVE.items() if hasattr(socket, name)}
