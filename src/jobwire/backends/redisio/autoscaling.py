"""Triggers on keys in Redis. KEDA's scaler counts the members of one key: of a list, a set, a sorted set or a hash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from redis.connection import parse_url  # pyright: ignore[reportUnknownVariableType] untyped

from jobwire.backends.autoscaling import Scaling, Trigger, unreachable
from jobwire.urls import Address

_SECRETS = {
    "username": "the user name",
    "password": "the password",
    "sentinelUsername": "the user name at the sentinels",
    "sentinelPassword": "the password at the sentinels",
}


def key_scaling(
    address: Address, counted: Mapping[str, str], at_least_one: Mapping[str, str], *, counted_when_paused: str
) -> Scaling:
    """Returns triggers on keys, by their names in the formula. `counted` are added up. Each of `at_least_one` counts as
    one job if it is not empty."""
    kind, metadata, secrets = _server(address)
    keys = {**counted, **at_least_one}
    triggers = tuple(
        Trigger(name, kind, {**metadata, "listName": key}, "listLength", tuple(secrets)) for name, key in keys.items()
    )
    formula = " + ".join([*counted, *(f"({name} > 0 ? 1 : 0)" for name in at_least_one)])
    return Scaling(triggers, formula, secrets, counted_when_paused)


def _server(address: Address) -> tuple[str, dict[str, str], dict[str, str]]:
    """Returns the scaler, its metadata and its secrets for a server, a cluster or sentinels."""
    options = cast("dict[str, Any]", parse_url(address.driver_url))
    given = [name for name in ("username", "password") if options.get(name)]
    database = {"databaseIndex": str(options.get("db") or 0)}
    tls = {"enableTLS": "true"} if address.driver_url.startswith("rediss:") else {}
    if not address.hosts:
        if not options.get("host"):
            raise unreachable(address)
        where = f"{options['host']}:{options.get('port') or 6379}"
        return "redis", {"address": where, **database, **tls}, _chosen(given)
    hosts = ",".join(f"{host}:{port}" for host, port in address.hosts)
    if address.transport == "cluster":
        return "redis-cluster", {"addresses": hosts, **tls}, _chosen(given)
    query = address.driver_url.partition("?")[2]
    given += [name for name in ("sentinelUsername", "sentinelPassword") if _snake(name) in query]
    return "redis-sentinel", {"addresses": hosts, "sentinelMaster": address.service, **database, **tls}, _chosen(given)


def _chosen(names: list[str]) -> dict[str, str]:
    return {name: _SECRETS[name] for name in names}


def _snake(name: str) -> str:
    """Returns the name of an option in the URL.

    >>> _snake("sentinelPassword")
    'sentinel_password'
    """
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
