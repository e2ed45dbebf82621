"""The queues of a schema: pg-boss has a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.operate.drop_queue import drop_queue
from jobwire.backends.pgboss.operate.figures import figures
from jobwire.backends.pgboss.queues import Queues
from jobwire.boundary import Reading


class PgQueueList:
    """Implements QueueList. Leaves out the queues that pg-boss makes for itself."""

    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues

    async def names(self) -> Sequence[str]:
        if self._store.is_empty:
            return []
        return sorted(str(name) for name, _ in await self._store.ask("queue_names", {}))

    async def search(self, cursor: str | None) -> tuple[Sequence[str], str | None]:
        return await self.names(), None

    async def has(self, queue: str) -> bool:
        return await self._queues.reread(queue) is not None

    async def figures(self, queues: Sequence[str], most: int, since: datetime | None) -> Reading:
        return await figures(self._store, queues, most, since)

    async def forget(self, queue: str) -> None:
        """Deletes the queue's row, which obliterating leaves because it holds the queue's settings."""
        await drop_queue(self._store, self._queues, queue)
