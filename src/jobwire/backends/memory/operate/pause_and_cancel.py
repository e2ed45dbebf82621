"""Pausing a queue, and cancelling single jobs."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.memory.connection import Access
from jobwire.backends.memory.operate import admin
from jobwire.boundary import Acted


class MemoryPause:
    """Implements Pause."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def pause(self, queue: str) -> None:
        with self._access.locked(queue) as (state, now):
            admin.pause(state, now)

    async def resume(self, queue: str) -> None:
        with self._access.locked(queue) as (state, now):
            admin.resume(state, now)

    async def paused(self, queue: str) -> bool:
        with self._access.locked(queue) as (state, _):
            return state.paused


class MemoryCancels:
    """Implements Cancels."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._access.each(queue, job_ids, admin.cancel)
