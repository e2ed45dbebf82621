"""The store in memory that an app has while it is tested."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from jobwire.backends.memory.backend import MemoryBackend
from jobwire.backends.memory.rules import by_number
from jobwire.backends.memory.store.queue_state import QueueState
from jobwire.backends.memory.store.record import Record
from jobwire.backends.memory.store.store import Store
from jobwire.backends.memory.work.consumer import MemoryConsumer
from jobwire.backends.rules import rules_of
from jobwire.boundary import ConsumerSettings
from jobwire.connection import Connection
from jobwire.tasks.depends import Provider
from jobwire.tasks.store import AppStore
from jobwire.testing.clock import Clock

WORKER_ID = "testing"
_LEASE = 10.0 * 365 * 86400
"""Seconds of the lease of a job that is run without a worker. It does not end while a debugger or the clock is used."""


class StoreInMemory(AppStore):
    """An empty store of its own, which refuses what the protocol of the app's real store refuses."""

    has_children = False
    keeps_rates = False

    def __init__(self, real: AppStore, clock: Clock, overrides: Mapping[Provider, Provider] | None = None) -> None:
        address = real.connection.address
        like = address.options.get("like") if address.protocol == "memory" else address.protocol
        self.memory = Store(clock.timestamp, by_number if like is None else rules_of(like).rank, keeps_added=True)
        self.overrides = real.overrides if overrides is None else {**real.overrides, **overrides}
        connection = Connection("memory:testing" if like is None else f"memory:testing?like={like}")
        connection.backend = MemoryBackend(store=self.memory, like=like)
        super().__init__(connection, owns=False, size_limit=real.size_limit)

    def consumer(self, queue: str) -> MemoryConsumer:
        """Returns the consumer of a queue, for jobs that are run without a worker."""
        return MemoryConsumer(self.memory, ConsumerSettings(queue, WORKER_ID, lease=_LEASE))

    def added(self, queue: str) -> list[Record]:
        """Returns all jobs that were added to a queue, in order, also those that are deleted. Jobs of schedules are not
        among them."""
        with self.memory.lock:
            return [record for record in self.memory.queue(queue).added or () if record.schedule_key is None]

    def next_due(self, queues: Collection[str]) -> float | None:
        """Returns the time in seconds since the epoch at which the next job of these queues is due, or None."""
        with self.memory.lock:
            due = [state.next_due() for state in map(self.memory.queue, queues) if not state.paused]
        return min((moment / 1000 for moment in due if moment is not None), default=None)

    async def idle(self, queues: Collection[str]) -> None:
        """Returns when no job of these queues is ready and none runs."""
        while True:
            with self.memory.lock:
                now = self.memory.now()
                states = [self.memory.queue(name) for name in queues]
                if not any(_is_busy(state, now) for state in states):
                    return
                sleepers = [(state, state.news.register()) for state in states]
            try:
                await asyncio.wait([sleeper for _, sleeper in sleepers], return_when=asyncio.FIRST_COMPLETED)
            finally:
                with self.memory.lock:
                    for state, sleeper in sleepers:
                        state.news.leave(sleeper)


def _is_busy(queue: QueueState, now: int) -> bool:
    due = queue.next_due()
    return bool(queue.active) or (not queue.paused and (bool(queue.ready) or (due is not None and due <= now)))
