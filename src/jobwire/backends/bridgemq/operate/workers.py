"""The workers that are alive and may run jobs of a type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.bridgemq.work.registry import live_workers, workers_by_type
from jobwire.model import WorkerInfo


class BridgeWorkers:
    """Implements Workers."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def workers(self, queue: str) -> Sequence[WorkerInfo]:
        return [worker.info for worker in await live_workers(self._namespace.type(queue))]

    async def counts(self, queues: Sequence[str]) -> Mapping[str, int]:
        found = await workers_by_type(self._namespace.store, self._namespace.keys, queues)
        return {queue: len(workers) for queue, workers in found.items()}
