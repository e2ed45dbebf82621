"""The queues of the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from jobwire.backends.memory.connection import Access
from jobwire.backends.memory.operate.read import counts, page
from jobwire.boundary import QueueFigures, Reading
from jobwire.model import State


class MemoryQueueList:
    """Implements QueueList. A queue exists while it has a job or a schedule, or is paused."""

    def __init__(self, access: Access, *, has_pause: bool) -> None:
        self._access = access
        self._has_pause = has_pause

    async def names(self) -> Sequence[str]:
        store = self._access.store()
        with store.lock:
            known = [one.name for one in store.queues() if one.jobs or one.repeats or one.paused]
        return sorted(known)

    async def search(self, cursor: str | None) -> tuple[Sequence[str], str | None]:
        return await self.names(), None

    async def has(self, queue: str) -> bool:
        return queue in await self.names()

    async def figures(self, queues: Sequence[str], most: int, since: datetime | None) -> Reading:
        """Returns exact counts, whatever `most` is."""
        return Reading([self._figures(queue) for queue in queues])

    def _figures(self, queue: str) -> QueueFigures:
        with self._access.locked(queue) as (state, now):
            state.make_due_ready(now)
            ends = [job for end in (False, True) for job in page(state, State.WAITING, 1, None, reverse=end)]
            oldest = min((job.created_at for job in ends if job.created_at is not None), default=None)
            return QueueFigures(queue, counts(state), oldest, state.paused if self._has_pause else None)

    async def forget(self, queue: str) -> None:
        """Does nothing: obliterating deletes all data of a queue."""
