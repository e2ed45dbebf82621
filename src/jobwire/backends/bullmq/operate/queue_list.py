"""The queues of a prefix, found by their keys: BullMQ keeps no list of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobwire.backends.bullmq.connection import Server
from jobwire.backends.bullmq.operate.figures import figures
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.errors import translated_errors
from jobwire.boundary import Reading

_STEP = 1000
_GLOB = re.compile(r"([\\*?\[\]])")


class BullQueueList:
    """Implements QueueList. Clients write a queue's settings (`meta`) when they open it or add its first job."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def names(self) -> Sequence[str]:
        """Scans all keys of the database for settings, a thousand at a time, so that the server is never blocked."""
        found: set[str] = set()
        cursor: str | None = None
        while True:
            names, cursor = await self.search(cursor)
            found.update(names)
            if cursor is None:
                return sorted(found)

    async def search(self, cursor: str | None) -> tuple[Sequence[str], str | None]:
        """Looks at a thousand keys of the database."""
        before, after = f"{self._server.prefix}:".encode(), b":meta"
        pattern = _GLOB.sub(r"\\\1", before.decode()) + "*" + after.decode()
        keys, following = await _scan(self._server.store, pattern, cursor)
        names = [key[len(before) : -len(after)] for key in keys]
        return [name.decode(errors="replace") for name in names if name and b":" not in name], following

    async def has(self, queue: str) -> bool:
        keys = self._server.keys(queue)
        containers = (keys.wait, keys.paused, keys.prioritized, keys.delayed, keys.active, keys.completed, keys.failed)
        return bool(await self._server.store.call("EXISTS", keys.meta, keys.id, keys.repeat, *containers))

    async def figures(self, queues: Sequence[str], most: int, since: datetime | None) -> Reading:
        return await figures(self._server, queues)

    async def forget(self, queue: str) -> None:
        """Does nothing: obliterating deletes all data of a queue."""


async def _scan(store: RedisStore, pattern: str, cursor: str | None) -> tuple[Sequence[bytes], str | None]:
    """Returns the keys that match among a thousand, and the cursor of the next thousand, which in a cluster begins with
    the number of a node."""
    if not store.cluster:
        following, keys = await store.call("SCAN", cursor or 0, "MATCH", pattern, "COUNT", _STEP)
        return keys, str(int(following)) if int(following) else None
    number, _, start = (cursor or "0/0").partition("/")
    with translated_errors(store.where):
        async with store.slots, asyncio.timeout(store.reply_timeout):
            await store.client.initialize()
            nodes: list[Any] = sorted(store.client.get_primaries(), key=lambda node: node.name)
            if int(number) >= len(nodes):  # the cluster has become smaller
                return [], None
            node = nodes[int(number)]
            cursors, keys = await store.client.scan(int(start), pattern, _STEP, target_nodes=node)
    if cursors[node.name]:
        return keys, f"{number}/{cursors[node.name]}"
    return keys, f"{int(number) + 1}/0" if int(number) + 1 < len(nodes) else None
