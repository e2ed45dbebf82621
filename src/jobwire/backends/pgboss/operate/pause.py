"""Pauses queues. pg-boss has no pause, so it is side data, which only jobwire's workers read."""

from __future__ import annotations

from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import text


class PgPause:
    """Implements Pause."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def pause(self, queue: str) -> None:
        await self._store.need_side()
        await self._store.ask("pause", {"queue": text(queue)})

    async def resume(self, queue: str) -> None:
        if await self.paused(queue):
            await self._store.ask("unpause", {"queue": text(queue), "own_channel": self._store.own_channel})

    async def paused(self, queue: str) -> bool:
        return await self._store.find_side() and bool(await self._store.ask("is_paused", {"queue": text(queue)}))
