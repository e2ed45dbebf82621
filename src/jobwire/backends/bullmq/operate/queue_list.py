"""The queues of a prefix, found by their keys: BullMQ keeps no list of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from jobwire.backends.bullmq.connection import Server
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.errors import translated_errors

_STEP = 1000
_GLOB = re.compile(r"([\\*?\[\]])")


class BullQueueList:
    """Implements QueueList. Clients write a queue's settings (`meta`) when they open it or add its first job."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def names(self) -> Sequence[str]:
        """Scans all keys of the database for settings, a thousand at a time, so that the server is never blocked."""
        before, after = f"{self._server.prefix}:".encode(), b":meta"
        pattern = _GLOB.sub(r"\\\1", before.decode()) + "*" + after.decode()
        found = {key[len(before) : -len(after)] async for key in _scan(self._server.store, pattern)}
        return sorted(name.decode(errors="replace") for name in found if name and b":" not in name)

    async def has(self, queue: str) -> bool:
        keys = self._server.keys(queue)
        containers = (keys.wait, keys.paused, keys.prioritized, keys.delayed, keys.active, keys.completed, keys.failed)
        return bool(await self._server.store.call("EXISTS", keys.meta, keys.id, keys.repeat, *containers))

    async def forget(self, queue: str) -> None:
        """Does nothing: obliterating deletes all data of a queue."""


async def _scan(store: RedisStore, pattern: str) -> AsyncGenerator[bytes]:
    """Yields the keys that match, in a cluster those of all nodes."""
    if not store.cluster:
        cursor: Any = 0
        while True:
            cursor, keys = await store.call("SCAN", cursor, "MATCH", pattern, "COUNT", _STEP)
            for key in keys:
                yield key
            if not int(cursor):
                return
    with translated_errors(store.where):
        found = store.client.scan_iter(match=pattern, count=_STEP)
        while True:
            async with store.slots, asyncio.timeout(store.reply_timeout):
                key = await anext(found, None)
            if key is None:
                return
            yield key
