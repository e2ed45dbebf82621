"""The workers of a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobwire.backends.memory.connection import Access
from jobwire.model import WorkerInfo


class MemoryWorkers:
    """Implements Workers."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def workers(self, queue: str) -> Sequence[WorkerInfo]:
        with self._access.locked(queue) as (state, _):
            return [WorkerInfo(there.name, raw={"id": worker_id}) for worker_id, there in state.workers.items()]

    async def counts(self, queues: Sequence[str]) -> Mapping[str, int]:
        return {queue: len(await self.workers(queue)) for queue in queues}
