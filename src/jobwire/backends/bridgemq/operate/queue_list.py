"""The job types of a namespace."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.bridgemq.upkeep.reindex import READERS_STEPS, Reindex

_ALL = "*"


class BridgeQueueList:
    """Implements QueueList. A type exists if it has or had jobs, has a schedule, or is paused."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def names(self) -> Sequence[str]:
        """Returns the types in the index, which is first updated after changes by peers."""
        keys, store = self._namespace.keys, self._namespace.store
        await Reindex(self._namespace.scripts, keys).run(READERS_STEPS)
        indexed, paused, templates = await store.calls(
            [("SMEMBERS", keys.types), ("SMEMBERS", keys.paused), ("ZRANGE", keys.cron, 0, -1)]
        )
        names = {name.decode(errors="replace") for name in {*indexed, *paused}} - {_ALL, ""}
        if templates:
            data = await store.call("MGET", *(keys.data(job_id.decode(errors="replace")) for job_id in templates))
            documents = [codec.parse(raw) for raw in data if raw]
            names |= {str(document["type"]) for document in documents if document and document.get("type")}
        return sorted(names)

    async def has(self, queue: str) -> bool:
        return queue in await self.names()

    async def forget(self, queue: str) -> None:
        """Does nothing: obliterating deletes all data of a queue."""
