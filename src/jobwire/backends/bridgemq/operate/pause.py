"""Pausing and resuming a job type."""

from __future__ import annotations

from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.bridgemq.job_type import JobType


class BridgePause:
    """Implements Pause."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def pause(self, queue: str) -> None:
        await stop_claims(self._namespace.type(queue))

    async def resume(self, queue: str) -> None:
        keys = self._namespace.keys
        await self._namespace.store.calls([("SREM", keys.paused, queue), ("PUBLISH", keys.wake, queue)])

    async def paused(self, queue: str) -> bool:
        """Returns True if the type is paused, or the whole namespace."""
        paused = self._namespace.keys.paused
        return any(await self._namespace.store.calls([("SISMEMBER", paused, queue), ("SISMEMBER", paused, "*")]))


async def stop_claims(kind: JobType) -> None:
    """Pauses the type until it is resumed."""
    await kind.store.call("SADD", kind.keys.paused, kind.name)
