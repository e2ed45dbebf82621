"""The queues of a collection, which are the names of its jobs: Monque keeps no list of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from jobwire.backends.monque.codec import text_of
from jobwire.backends.monque.connection.store import LONG, Store
from jobwire.backends.monque.operate.figures import PAUSED, figures
from jobwire.boundary import Reading


class MonqueQueueList:
    """Implements QueueList. A queue exists while it has a job, which a schedule is too, or is paused."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def names(self) -> Sequence[str]:
        async with self._store.reaching(LONG):
            names = await self._store.jobs.distinct("name")
            paused = await self._store.side.distinct("name", PAUSED)
        return sorted({*filter(None, map(text_of, [*names, *paused]))})

    async def search(self, cursor: str | None) -> tuple[Sequence[str], str | None]:
        return await self.names(), None

    async def has(self, queue: str) -> bool:
        async with self._store.reaching():
            if await self._store.jobs.find_one({"name": queue}, {"_id": 1}) is not None:
                return True
            return await self._store.side.find_one({"_id": f"queue:{queue}", "paused": True}, {"_id": 1}) is not None

    async def figures(self, queues: Sequence[str], most: int, since: datetime | None) -> Reading:
        return await figures(self._store, queues, most, since)

    async def forget(self, queue: str) -> None:
        """Does nothing: obliterating deletes all data of a queue."""
