"""The stores of this process: queues behind one lock, shared by name."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable

from jobwire import forking
from jobwire.backends.memory.rules import by_number
from jobwire.backends.memory.store.queue_state import QueueState
from jobwire.backends.rules import Rank


class Store:
    """Queues by name. `lock` guards everything inside. It is held briefly and never across an await.

    `clock` gives seconds since the epoch. A test may pass its own, to let leases and delays expire at will. `rank`
    gives the order of waiting jobs. With `keeps_added`, each queue keeps a list of all jobs that were ever added to it.
    """

    def __init__(
        self, clock: Callable[[], float] = time.time, rank: Rank = by_number, *, keeps_added: bool = False
    ) -> None:
        self.lock = threading.Lock()
        self._rank = rank
        self._clock = clock
        self._keeps_added = keeps_added
        self._queues: dict[str, QueueState] = {}
        # Counted over the whole store and never reset: a cursor taken before `obliterate` stays valid after it.
        self._numbers = itertools.count(1)

    def now(self) -> int:
        """Returns the milliseconds since the epoch."""
        return int(self._clock() * 1000)

    def queue(self, name: str) -> QueueState:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = QueueState(name, self._numbers, self.queue, self._rank)
            if self._keeps_added:
                queue.added = []
        return queue

    def queues(self) -> list[QueueState]:
        """Returns all queues. The caller holds the lock."""
        return list(self._queues.values())

    def wake_all(self) -> None:
        """Lets all waiting workers look again: the clock has been moved."""
        with self.lock:
            for queue in self._queues.values():
                queue.work.wake()


class _NamedStores:
    """Stores that several connections share. The first to open a name makes the store, the last to close deletes it.

    The empty name is one of them. A forked child starts without stores: they belong to its parent.
    """

    def __init__(self) -> None:
        self._start_over()
        forking.follow(self, _NamedStores._start_over)

    def _start_over(self) -> None:
        self._lock = threading.Lock()
        self._stores: dict[str, Store] = {}
        self._users: Counter[str] = Counter()

    def take(self, name: str, make: Callable[[], Store]) -> Store:
        with self._lock:
            self._users[name] += 1
            if name not in self._stores:
                self._stores[name] = make()
            return self._stores[name]

    def give_back(self, name: str) -> None:
        with self._lock:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._stores[name]


NAMED = _NamedStores()
