"""Copies the settings of a caller's redis-py client, for connections of our own.

jobwire copies where the client connects to and how: address, database, credentials, TLS, sentinels, cluster nodes,
timeouts. It neither uses nor closes the client: a worker's blocking wait would hold a connection of the caller's pool
for seconds, and a client of an event loop or a thread of its own can't be used from another. Retries of the client are
not copied: a command whose reply was lost may have been executed, so jobwire sends each one once. jobwire decodes
replies itself, so `decode_responses`, encodings and the version of the Redis protocol don't matter.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import redis
from redis import asyncio as redis_asyncio
from redis import connection as blocking
from redis.asyncio import connection as asynchronous
from redis.asyncio.sentinel import SentinelConnectionPool as AsyncSentinelPool
from redis.sentinel import SentinelConnectionPool

from jobwire.errors import InvalidOption
from jobwire.urls import Address

_PLAIN_CLIENTS = (redis.Redis, redis_asyncio.Redis)
_CLUSTER_CLIENTS = (redis.RedisCluster, redis_asyncio.RedisCluster)
_SENTINEL_POOLS = (SentinelConnectionPool, AsyncSentinelPool)
_TLS = (blocking.SSLConnection, asynchronous.SSLConnection)
_ASYNCHRONOUS: Mapping[type[Any], type[Any]] = {
    blocking.Connection: asynchronous.Connection,
    blocking.SSLConnection: asynchronous.SSLConnection,
    blocking.UnixDomainSocketConnection: asynchronous.UnixDomainSocketConnection,
}
_COPIED_OPTIONS = {
    "host",
    "port",
    "path",
    "db",
    "username",
    "password",
    "credential_provider",
    "client_name",
    "health_check_interval",
    "redis_connect_func",
}
_NODES_SHOWN = 3


def _empty() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, repr=False)
class ClientSettings:
    """Settings copied from a client. They include passwords, so there is no repr."""

    options: Mapping[str, Any]
    """Options of a connection to the server, named as the driver names the parts of a URL."""
    sentinel: Mapping[str, Any] = field(default_factory=_empty)
    """Arguments of the driver's Sentinel."""
    cluster: Mapping[str, Any] = field(default_factory=_empty)
    """Arguments of the driver's RedisCluster, without those of its connections."""


def address_of(client: object, named: Address) -> Address:
    """Returns the client's address, with the protocol and the options of `named`.

    Raises InvalidOption for an object that is not a redis-py client, and for settings that asyncio connections don't
    support. Does not connect.
    """
    if isinstance(client, _CLUSTER_CLIENTS):
        found = _of_cluster(client)
    elif isinstance(client, _PLAIN_CLIENTS):
        pool: Any = client.connection_pool
        found = _of_sentinels(pool) if isinstance(pool, _SENTINEL_POOLS) else _of_server(pool)
    else:
        rule = "must be a client of redis-py: redis.asyncio.Redis, redis.Redis, or RedisCluster of either"
        if isinstance(client, (redis.Sentinel, redis_asyncio.Sentinel)):
            rule = "must be the client of a service: sentinel.master_for('name')"
        raise InvalidOption("client", type(client).__name__, rule)
    return replace(
        found, protocol=named.protocol, options=named.options, redacted=f"{named.redacted} (client of {found.redacted})"
    )


def _of_server(pool: Any) -> Address:
    kind = pool.connection_class
    if not issubclass(kind, asynchronous.AbstractConnection):
        if kind not in _ASYNCHRONOUS:
            rule = "has a custom connection class that asyncio can't use: give a client of redis.asyncio"
            raise InvalidOption("client", kind.__name__, rule)
        _refuse_connect_function(pool.connection_kwargs.get("redis_connect_func"))
        kind = _ASYNCHRONOUS[kind]
    options = _copied(pool.connection_kwargs, _parameters(kind), own=_parameters(kind) - _standard_parameters())
    tls = issubclass(kind, asynchronous.SSLConnection)
    if "path" in options:
        url = f"unix://{options['path']}"
    else:
        host, port = options.get("host", "localhost"), options.get("port", 6379)
        url = f"{'rediss' if tls else 'redis'}://{_user(options)}{host}:{port}/{options.get('db', 0)}"
    settings = ClientSettings({**options, "connection_class": kind})
    return Address("", "rediss" if tls else "redis", url, client=settings)


def _of_sentinels(pool: Any) -> Address:
    if not pool.is_master:
        raise InvalidOption("client", "slave_for", "must be the client of the master: sentinel.master_for('name')")
    if not pool.connection_class.__module__.startswith("redis."):
        rule = "has a custom connection class, which can't be used with sentinels"
        raise InvalidOption("client", pool.connection_class.__name__, rule)
    if issubclass(pool.connection_class, blocking.AbstractConnection):
        _refuse_connect_function(pool.connection_kwargs.get("redis_connect_func"))
    tls = issubclass(pool.connection_class, _TLS)
    options = _copied(
        pool.connection_kwargs, _parameters(asynchronous.SSLConnection if tls else asynchronous.Connection)
    )
    manager = pool.sentinel_manager
    hosts = tuple(_host_of(one.connection_pool.connection_kwargs) for one in manager.sentinels)
    sentinel: dict[str, Any] = {
        "min_other_sentinels": manager.min_other_sentinels,
        "sentinel_kwargs": _copied(manager.sentinel_kwargs, _parameters(redis_asyncio.Redis), also={"ssl"}),
    }
    forced = getattr(manager, "_force_master_ip", None)
    if forced is not None:
        sentinel["force_master_ip"] = forced
    url = f"sentinel://{_user(options)}{_shown(hosts)}/{pool.service_name}/{options.get('db', 0)}"
    settings = ClientSettings(_with_tls(options, tls), sentinel)
    return Address("", "sentinel", url, hosts=hosts, service=pool.service_name, client=settings)


def _of_cluster(client: Any) -> Address:
    _refuse_connect_function(getattr(client, "user_on_connect_func", None))
    manager = client.nodes_manager
    given = dict(manager.connection_kwargs)
    given.pop("redis_connect_func", None)  # the driver's own, for reading from replicas
    kind = given.get("connection_class")
    tls = bool(given.get("ssl")) or (kind is not None and issubclass(kind, _TLS))
    nodes = [*getattr(client, "startup_nodes", ()), *manager.startup_nodes.values()]
    hosts = tuple(dict.fromkeys((str(node.host), int(node.port)) for node in nodes))
    options = _copied(given, _parameters(redis_asyncio.RedisCluster))
    coverage = getattr(manager, "require_full_coverage", getattr(manager, "_require_full_coverage", True))
    cluster = {"address_remap": manager.address_remap, "require_full_coverage": coverage}
    url = f"cluster://{_user(options)}{_shown(hosts)}/"
    settings = ClientSettings(_with_tls(options, tls), cluster=cluster)
    return Address("", "cluster", url, hosts=hosts, client=settings)


def _copied(
    given: Mapping[str, Any], known: Collection[str], *, own: Collection[str] = (), also: Collection[str] = ()
) -> dict[str, Any]:
    """Returns the settings for where and how to connect. `own` names the settings of a connection class of the
    caller's.

    None means our default, except for TLS, where it may mean that certificates are not checked.
    """
    copied: dict[str, Any] = {}
    for name, value in given.items():
        about_tls = name.startswith("ssl_")
        if about_tls and value and name not in known:
            raise InvalidOption("client", name, "is a TLS setting that asyncio connections of the driver don't have")
        if name not in known or (value is None and not about_tls):
            continue
        if name == "socket_keepalive_options" and not isinstance(value, Mapping):
            continue  # the driver's default for an option that was not given
        if about_tls or name.startswith("socket_") or name in _COPIED_OPTIONS or name in own or name in also:
            copied[name] = value
    return copied


def _parameters(taker: type[Any]) -> set[str]:
    """Returns the names of all arguments of a class and its base classes."""
    makers = [vars(part)["__init__"] for part in taker.__mro__ if "__init__" in vars(part)]
    return {name for maker in makers if callable(maker) for name in inspect.signature(maker).parameters}


def _standard_parameters() -> set[str]:
    return {name for kind in _ASYNCHRONOUS.values() for name in _parameters(kind)}


def _with_tls(options: dict[str, Any], tls: bool) -> dict[str, Any]:
    return {**options, "connection_class": asynchronous.SSLConnection} if tls else options


def _refuse_connect_function(function: object) -> None:
    if function is not None:
        rule = "is a function for blocking connections: give a client of redis.asyncio"
        raise InvalidOption("client", "redis_connect_func", rule)


def _host_of(options: Mapping[str, Any]) -> tuple[str, int]:
    return str(options.get("host", "localhost")), int(options.get("port", 26379))


def _user(options: Mapping[str, Any]) -> str:
    """Returns the part of a URL before the host, with the password masked."""
    if "credential_provider" in options:
        return "***@"
    secret = ":***" if options.get("password") else ""
    return f"{options.get('username', '')}{secret}@" if secret or options.get("username") else ""


def _shown(hosts: Collection[tuple[str, int]]) -> str:
    names = [f"{host}:{port}" for host, port in hosts]
    return ",".join(names[:_NODES_SHOWN]) + (",…" if len(names) > _NODES_SHOWN else "")
