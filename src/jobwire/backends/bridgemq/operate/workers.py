"""The workers that are alive and may run jobs of a type."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.bridgemq.work.registry import live_workers
from jobwire.model import WorkerInfo


class BridgeWorkers:
    """Implements Workers."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def workers(self, queue: str) -> Sequence[WorkerInfo]:
        return [worker.info for worker in await live_workers(self._namespace.type(queue))]
