"""Pauses queues. Monque has no pause, so it is side data, which only jobwire's workers read."""

from __future__ import annotations

from jobwire.backends.monque.connection.side_data import SideData


class MonquePause:
    """Implements Pause. Workers read the pause from the side data before each claim."""

    def __init__(self, side: SideData) -> None:
        self._side = side

    async def pause(self, queue: str) -> None:
        await self._side.set_paused(queue, True)

    async def resume(self, queue: str) -> None:
        await self._side.set_paused(queue, False)

    async def paused(self, queue: str) -> bool:
        return await self._side.paused(queue)
