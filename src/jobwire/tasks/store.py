"""The store that an app's jobs are in, with the app's queues of it."""

from __future__ import annotations

from collections.abc import Mapping

from jobwire.checks import Seconds
from jobwire.connection import Connection
from jobwire.queue import Queue
from jobwire.tasks.depends import Provider


class AppStore:
    """The connection of an app and its queues, each made at its first use. `App.testing` puts another in its place."""

    overrides: Mapping[Provider, Provider] = {}
    """Providers of dependencies to call in place of others."""
    has_children = True
    """False if tasks with executor="process" run in this process."""
    keeps_rates = True
    """False if workers ignore the rates of tasks."""

    def __init__(
        self, connection: Connection, *, owns: bool, size_limit: int | None, wait_for_store: Seconds = 0.0
    ) -> None:
        self.connection = connection
        self.size_limit = size_limit
        self._owns = owns
        self._wait_for_store = wait_for_store
        self._queues: dict[str, Queue] = {}

    def queue(self, name: str) -> Queue:
        """Returns the queue of this name."""
        if name not in self._queues:
            self._queues[name] = self.make_queue(name)
        return self._queues[name]

    def make_queue(self, name: str) -> Queue:
        """Returns a new queue."""
        return Queue(name, self.connection, size_limit=self.size_limit, wait_for_store=self._wait_for_store)

    async def open(self) -> None:
        """Connects to the store."""
        await self.connection.open(self._wait_for_store)

    async def close(self) -> None:
        """Waits for the adds in progress and disconnects."""
        queues, self._queues = self._queues, {}
        for queue in queues.values():
            await queue.close()
        if self._owns:
            await self.connection.close()
