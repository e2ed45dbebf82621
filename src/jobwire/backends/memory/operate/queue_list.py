"""The queues of the store."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.memory.connection import Access


class MemoryQueueList:
    """Implements QueueList. A queue exists while it has a job or a schedule, or is paused."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def names(self) -> Sequence[str]:
        store = self._access.store()
        with store.lock:
            known = [one.name for one in store.queues() if one.jobs or one.repeats or one.paused]
        return sorted(known)

    async def has(self, queue: str) -> bool:
        return queue in await self.names()

    async def forget(self, queue: str) -> None:
        """Does nothing: obliterating deletes all data of a queue."""
