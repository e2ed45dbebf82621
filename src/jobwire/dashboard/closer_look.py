"""A closer look at a few queues at a time, after the look at all: how long jobs wait and run, and blocked parents.

A queue is read again when jobs have completed in it, or while parents wait in it. After a reading that took a second,
the next one of that queue follows a hundred seconds later at the earliest.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping

from jobwire.boundary import Feature, QueueFigures
from jobwire.connection import Connection
from jobwire.dashboard.blocked import Blocked, blocked_in
from jobwire.dashboard.latency import SAMPLE, Latency, latency_of
from jobwire.model import State
from jobwire.queue import Queue

_QUEUES = 5
"""Queues of one look."""
_AGAIN, _SHARE = 8.0, 100
_LONGEST = 0.2
"""Seconds after which a look takes no further queue."""


class CloserLook:
    """The latencies and blocked parents of a store's queues, as far as they have been looked at."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._next: dict[str, float] = {}
        self._completed: dict[str, int] = {}
        self.latencies: dict[str, Latency] = {}
        self.blocked: dict[str, Blocked] = {}

    async def go_on(self, figures: Mapping[str, QueueFigures], open_queue: Callable[[str], Awaitable[Queue]]) -> None:
        """Reads the queues whose turn it is. Forgets those that are gone."""
        for known in (self._next, self._completed, self.latencies, self.blocked):
            for gone in known.keys() - figures.keys():
                del known[gone]
        for name in self.blocked.keys() - {name for name, one in figures.items() if _parents(one)}:
            del self.blocked[name]
        began = time.monotonic()
        due = [name for name, one in figures.items() if self._next.get(name, 0.0) <= began and self._has_news(one)]
        for name in sorted(due, key=lambda name: self._next.get(name, 0.0))[:_QUEUES]:
            now = time.monotonic()
            if now - began > _LONGEST:
                return
            try:
                await self._read(figures[name], await open_queue(name))
            finally:
                ended = time.monotonic()
                self._next[name] = ended + max(_AGAIN, _SHARE * (ended - now))

    def _has_news(self, figures: QueueFigures) -> bool:
        completed = figures.counts.get(State.COMPLETED, 0)
        came = figures.turnover is not None and figures.turnover.completed > 0
        return bool(completed and (came or completed != self._completed.get(figures.name))) or _parents(figures) > 0

    async def _read(self, figures: QueueFigures, queue: Queue) -> None:
        name = figures.name
        if figures.counts.get(State.COMPLETED):
            self._completed[name] = int(figures.counts[State.COMPLETED])
            jobs = await queue.jobs(State.COMPLETED, limit=SAMPLE)
            self.latencies[name] = latency_of(jobs, delays=bool(figures.counts.get(State.DELAYED)))
        if _parents(figures) and queue.capabilities.has(Feature.FLOWS):
            found = await blocked_in(queue, self._connection)
            if found is None:
                self.blocked.pop(name, None)
            else:
                self.blocked[name] = found


def _parents(figures: QueueFigures) -> int:
    return figures.counts.get(State.WAITING_CHILDREN, 0)
