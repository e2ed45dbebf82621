"""A stop of all claims from a queue, which workers of jobwire honour and the peer's do not know."""

from __future__ import annotations

from jobwire.backends.monque.connection.side_data import SideData


class MonquePause:
    """Implements Pause. The notes hold the pause, since workers look it up there before each claim."""

    def __init__(self, side: SideData) -> None:
        self._side = side

    async def pause(self, queue: str) -> None:
        await self._side.set_paused(queue, True)

    async def resume(self, queue: str) -> None:
        await self._side.set_paused(queue, False)

    async def paused(self, queue: str) -> bool:
        return await self._side.paused(queue)
