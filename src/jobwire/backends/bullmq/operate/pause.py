"""Pausing and resuming a queue."""

from __future__ import annotations

from jobwire.backends.bullmq.connection import Server


class BullPause:
    """Implements Pause."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def pause(self, queue: str) -> None:
        await self._server.run("pause", queue)

    async def resume(self, queue: str) -> None:
        await self._server.run("resume", queue)

    async def paused(self, queue: str) -> bool:
        return bool(await self._server.store.call("HEXISTS", self._server.keys(queue).meta, "paused"))
