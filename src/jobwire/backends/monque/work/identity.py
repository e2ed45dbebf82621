"""The id of a worker, which its consumers of several queues share."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary


class Identity:
    """Records for which queues it was checked that no other live instance has this id.

    One check is enough for all queues of a worker. A second consumer of the same queue is checked again, since it
    belongs to another worker.
    """

    def __init__(self) -> None:
        self._queues: set[str] = set()
        self.looking = asyncio.Lock()
        """Held by the consumer that checks."""

    def is_known(self, queue: str) -> bool:
        """Returns True if the id was checked for another queue, and not for this one."""
        return bool(self._queues) and queue not in self._queues

    def use(self, queue: str) -> None:
        self._queues.add(queue)

    def leave(self, queue: str) -> None:
        self._queues.discard(queue)


class Identities:
    """The identities that consumers of one connection use now."""

    def __init__(self) -> None:
        self._by_id: WeakValueDictionary[str, Identity] = WeakValueDictionary()

    def of(self, worker_id: str) -> Identity:
        identity = self._by_id.get(worker_id)
        if identity is None:
            identity = self._by_id[worker_id] = Identity()
        return identity
