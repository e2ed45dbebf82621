"""The job types of a namespace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.bridgemq.operate.figures import figures
from jobwire.backends.bridgemq.upkeep.reindex import READERS_STEPS, Reindex
from jobwire.boundary import Reading

_ALL = "*"


class BridgeQueueList:
    """Implements QueueList. A type exists if it has or had jobs, has a schedule, or is paused."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def names(self) -> Sequence[str]:
        """Returns the types in the index, which is first updated after changes by peers."""
        keys, store = self._namespace.keys, self._namespace.store
        await Reindex(self._namespace.scripts, keys).run(READERS_STEPS)
        indexed, paused = await store.calls([("SMEMBERS", keys.types), ("SMEMBERS", keys.paused)])
        names = {name.decode(errors="replace") for name in {*indexed, *paused}} - {_ALL, ""}
        return sorted(names | await self._scheduled())

    async def search(self, cursor: str | None) -> tuple[Sequence[str], str | None]:
        return await self.names(), None

    async def has(self, queue: str) -> bool:
        """Looks for schedules of the type, which are not indexed, only if it is not found otherwise."""
        keys, store = self._namespace.keys, self._namespace.store
        await Reindex(self._namespace.scripts, keys).run(READERS_STEPS)
        known = await store.calls([("SISMEMBER", keys.types, queue), ("SISMEMBER", keys.paused, queue)])
        return any(known) or queue in await self._scheduled()

    async def _scheduled(self) -> set[str]:
        """Returns the types that have a schedule."""
        keys, store = self._namespace.keys, self._namespace.store
        templates = await store.call("ZRANGE", keys.cron, 0, -1)
        if not templates:
            return set()
        data = await store.call("MGET", *(keys.data(job_id.decode(errors="replace")) for job_id in templates))
        documents = [codec.parse(raw) for raw in data if raw]
        return {str(document["type"]) for document in documents if document and document.get("type")}

    async def figures(self, queues: Sequence[str], most: int, since: datetime | None) -> Reading:
        return await figures(self._namespace, queues)

    async def forget(self, queue: str) -> None:
        """Does nothing: obliterating deletes all data of a queue."""
