"""The jobs that hold unique keys."""

from __future__ import annotations

from jobwire.backends.bullmq.connection import Server


class BullUniqueOwners:
    """Implements UniqueOwners."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def unique_owner(self, queue: str, key: str) -> str | None:
        owner: bytes | None = await self._server.store.call("GET", self._server.keys(queue).unique(key))
        return owner.decode(errors="replace") if owner is not None else None

    async def release_unique(self, queue: str, key: str) -> bool:
        return bool(await self._server.store.call("DEL", self._server.keys(queue).unique(key)))
