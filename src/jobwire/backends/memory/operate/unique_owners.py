"""The jobs that hold unique keys."""

from __future__ import annotations

from jobwire.backends.memory.connection import Access


class MemoryUniqueOwners:
    """Implements UniqueOwners."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def unique_owner(self, queue: str, key: str) -> str | None:
        with self._access.locked(queue) as (state, now):
            holder = state.unique.holder(key, now)
            return holder.job_id if holder is not None else None

    async def release_unique(self, queue: str, key: str) -> bool:
        with self._access.locked(queue) as (state, now):
            return state.unique.free(key, now)
