"""A backend's access to its store, which is opened at the first use and only used under its lock."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from functools import partial

from jobwire.backends.memory.store.queue_state import QueueState
from jobwire.backends.memory.store.store import NAMED, Store
from jobwire.backends.rules import Rank
from jobwire.boundary import Acted
from jobwire.errors import StoreUnavailable


class Access:
    """Shares the store of its name with every open backend of the process, or has a private store."""

    def __init__(self, name: str, private: Store | None, rank: Rank) -> None:
        self._name = name
        self._private = private
        self._rank = rank
        self._taken: Store | None = None
        self._closed = False

    def open(self) -> None:
        self._closed = False
        self.store()

    def close(self) -> None:
        if self._taken is not None and self._private is None:
            NAMED.give_back(self._name)
        self._taken = None
        self._closed = True

    def store(self) -> Store:
        if self._closed:
            raise StoreUnavailable("the connection to the memory store is closed")
        if self._taken is None:
            self._taken = self._private or NAMED.take(self._name, partial(Store, rank=self._rank))
        return self._taken

    @contextlib.contextmanager
    def locked(self, queue: str) -> Generator[tuple[QueueState, int]]:
        """Yields the queue and the time, with the store locked."""
        store = self.store()
        with store.lock:
            yield store.queue(queue), store.now()

    def each(self, queue: str, job_ids: Sequence[str], act: Callable[[QueueState, str, int], Acted]) -> Sequence[Acted]:
        with self.locked(queue) as (state, now):
            state.make_due_ready(now)
            return [act(state, job_id, now) for job_id in job_ids]
