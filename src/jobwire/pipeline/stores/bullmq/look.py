"""Looks at queues without reading their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from redis.exceptions import ResponseError

from jobwire.backends.bullmq.keys import DEFAULT_PREFIX, Keys
from jobwire.pipeline.stores.bullmq.containers import CONTAINERS
from jobwire.pipeline.stores.redisio.connection import Command, RedisConnection
from jobwire.urls import Address


def look(address: Address, queues: Sequence[str]) -> list[Any]:
    """Returns, for each queue, the end of its event stream and how much its containers hold. Every change of a job's
    state adds an event. Changes without one, such as new data for a job, are not seen here."""
    keys = [Keys(address.options.get("prefix", DEFAULT_PREFIX), queue) for queue in queues]
    # In a cluster, each queue may be on another server.
    groups = [[one] for one in keys] if address.transport == "cluster" else [keys] if keys else []
    seen: list[Any] = []
    for group in groups:
        with closing(RedisConnection(address, group[0].base)) as connection:
            replies = connection.calls([command for one in group for command in _commands(one)])
        seen += [_without_detail(reply) for reply in replies]
    return seen


def _commands(keys: Keys) -> list[Command]:
    sizes = [("LLEN" if one.kind == "list" else "ZCARD", keys.base + one.name) for one in CONTAINERS.values()]
    return [("XINFO", "STREAM", keys.events), ("GET", keys.id), *sizes]


def _without_detail(reply: Any) -> Any:
    """Returns what matters of a stream's description: its last id, and the number of events that it ever had."""
    if isinstance(reply, ResponseError):
        return str(reply)  # there is no stream
    if not isinstance(reply, list):
        return reply
    about: dict[bytes, Any] = dict(zip(reply[::2], reply[1::2], strict=True))
    return [about.get(b"last-generated-id"), about.get(b"entries-added")]
