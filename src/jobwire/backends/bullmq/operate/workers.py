"""The workers that are connected to a queue."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from jobwire.backends.bullmq.connection import Server
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.errors import translated_errors
from jobwire.model import WorkerInfo


class BullWorkers:
    """Implements Workers."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def workers(self, queue: str) -> Sequence[WorkerInfo]:
        """Returns the workers, found by the names of their blocking connections. In a cluster, asks all nodes."""
        unnamed = self._server.keys(queue).connection_name(None)
        named = f"{unnamed}:w:"
        found: list[WorkerInfo] = []
        for connection in await _connections(self._server.store):
            name = connection.get("name", "")
            if name == unnamed or name.startswith(named):
                found.append(_info(name.removeprefix(unnamed).removeprefix(":w:"), connection))
        return found

    async def counts(self, queues: Sequence[str]) -> Mapping[str, int]:
        connections = await _connections(self._server.store)
        found = Counter(connection.get("name", "").partition(":w:")[0] for connection in connections)
        return {queue: found[self._server.keys(queue).connection_name(None)] for queue in queues}


def _info(name: str, connection: Mapping[str, str]) -> WorkerInfo:
    client = f"{connection.get('lib-name', '')} {connection.get('lib-ver', '')}".strip()
    # The idle time of this connection is not the age of a sign of life: it only waits for jobs, and a busy worker uses
    # others.
    return WorkerInfo(name, connection.get("addr", ""), client, raw=connection)


async def _connections(store: RedisStore) -> list[dict[str, str]]:
    """Returns the CLIENT LIST of every node that has keys."""
    with translated_errors(store.where):
        async with store.slots, asyncio.timeout(store.reply_timeout):
            client = store.client
            if not store.cluster:
                return list(await client.client_list())
            answers: dict[str, list[dict[str, str]]] = await client.client_list(target_nodes=client.PRIMARIES)
            return [connection for answer in answers.values() for connection in answer]
