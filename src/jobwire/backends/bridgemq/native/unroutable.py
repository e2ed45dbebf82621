"""Finds jobs that no live worker can claim: their target has a server, stack, capability or region that none has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.bridgemq.native.routing import parse_definition, scope_of
from jobwire.backends.bridgemq.operate import read
from jobwire.backends.bridgemq.upkeep.reindex import READERS_STEPS, Reindex
from jobwire.backends.bridgemq.work.registry import live_workers
from jobwire.model import Job


class BridgeRouting:
    """Implements Routing."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def unroutable(self, queue: str, limit: int) -> Sequence[Job]:
        """Returns up to `limit` jobs that no live worker can claim, in the order of the list within each route."""
        kind = self._namespace.type(queue)
        await Reindex(kind.scripts, kind.keys).run(READERS_STEPS)
        workers = [worker.profile for worker in await live_workers(kind)]
        servers: list[bytes] = await kind.store.call("SMEMBERS", kind.keys.servers(kind.name))
        found: list[Job] = []
        for server in ["", *sorted(raw.decode(errors="replace") for raw in servers)]:
            scope = scope_of(kind.name, server)
            routes: dict[bytes, bytes] = await kind.store.call("HGETALL", kind.keys.routes(scope))
            for signature, definition in routes.items():
                route = parse_definition(definition)
                if signature == b"v" or len(found) >= limit or any(route.admits(worker) for worker in workers):
                    continue
                ids: list[Any] = await kind.store.call(
                    "ZRANGE", kind.keys.route(signature.decode(), scope), 0, limit - len(found) - 1
                )
                names = [raw.decode(errors="replace") for raw in ids]
                found += [job for job in await read.get(kind, names) if job is not None] if names else []
        return found
