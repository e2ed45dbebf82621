"""Several workers of one process as one Monque instance: one identity, and a limit on the sum of their jobs.

mail = Instance("mailer-1", concurrency=20)
Worker("welcome", greet, url, concurrency=20, instance=mail)
Worker("digest", collect, url, concurrency=20, instance=mail)
"""

from __future__ import annotations

import asyncio

from jobwire.options import text, whole


class Instance:
    """`concurrency`: at most so many jobs at once over all workers that were given this object; None: no limit.

    Whoever asks first gets the free slots, as in Monque, where names that were registered early win under the cap.
    All its workers must run in one event loop.
    """

    def __init__(self, name: str | None = None, *, concurrency: int | None = None) -> None:
        self.id = None if name is None else text("instance", name)
        self._limit = None if concurrency is None else whole("instance.concurrency", concurrency, minimum=1)
        self._busy = 0
        self._freed = asyncio.Event()
        self.known = False
        """One of its workers has found that no living instance has this id."""
        self.looking = asyncio.Lock()
        """Held by the worker that finds out."""

    @property
    def full(self) -> bool:
        return self._limit is not None and self._busy >= self._limit

    def reserve(self, wanted: int) -> int:
        """Take up to that many slots; the number taken."""
        taken = wanted if self._limit is None else max(0, min(wanted, self._limit - self._busy))
        self._busy += taken
        return taken

    def free(self, slots: int) -> None:
        self._busy -= slots
        if slots and not self.full:
            self._freed.set()

    async def has_room(self) -> None:
        """Return when a slot is free."""
        while self.full:
            self._freed.clear()
            await self._freed.wait()
