"""Asks every node that has keys, and looks at a bounded number of keys."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.errors import translated_errors

_STEP = 1000
_COMMANDS = 500


async def on_each_node(store: RedisStore, *command: Any) -> list[tuple[str, Any]]:
    """Returns the replies of all primaries, each with the node's name. A single server has the name ''."""
    with translated_errors(store.where):
        async with store.slots, asyncio.timeout(store.reply_timeout):
            if not store.cluster:
                return [("", await store.client.execute_command(*command))]
            await store.client.initialize()
            replies = await store.client.execute_command(*command, target_nodes=store.client.PRIMARIES)
            return sorted(cast("Mapping[str, Any]", replies).items())


async def in_steps(store: RedisStore, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Sends any number of commands, five hundred in each round trip. Returns a reply for each."""
    replies: list[Any] = []
    for start in range(0, len(commands), _COMMANDS):
        replies += await store.calls(commands[start : start + _COMMANDS])
    return replies


async def missing(store: RedisStore, keys: Sequence[str]) -> list[bool]:
    """Returns True for each key that does not exist."""
    return [not there for there in await in_steps(store, [("EXISTS", key) for key in keys])]


async def some_keys(store: RedisStore, pattern: str, most: int) -> tuple[list[str], bool]:
    """Returns the keys that match among about the first `most` keys of the database, and whether that was all of them.

    In a cluster, `most` counts the keys that match.
    """
    found: list[bytes] = []
    if store.cluster:
        with translated_errors(store.where):
            async for key in store.client.scan_iter(match=pattern, count=_STEP):
                found.append(key)
                if len(found) >= most:
                    return _texts(found), False
        return _texts(found), True
    cursor: Any = 0
    for _ in range(0, most, _STEP):
        cursor, keys = await store.call("SCAN", cursor, "MATCH", pattern, "COUNT", _STEP)
        found += keys
        if not int(cursor):
            return _texts(found), True
    return _texts(found), False


def _texts(keys: list[bytes]) -> list[str]:
    return [key.decode(errors="replace") for key in dict.fromkeys(keys)]
