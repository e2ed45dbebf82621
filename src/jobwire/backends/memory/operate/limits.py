"""Limits that hold for all workers of a queue together."""

from __future__ import annotations

from jobwire.backends.memory.connection import Access
from jobwire.backends.memory.store.queue_state import QueueState
from jobwire.model import Limits
from jobwire.rate import Rate


class MemoryLimits:
    """Implements QueueLimits."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def limits(self, queue: str) -> Limits:
        with self._access.locked(queue) as (state, now):
            return _limits(state, now)

    async def limit_rate(self, queue: str, rate: Rate | None) -> None:
        with self._access.locked(queue) as (state, _):
            state.rate = rate
            state.work.wake()

    async def limit_concurrency(self, queue: str, concurrency: int | None) -> None:
        with self._access.locked(queue) as (state, _):
            state.concurrency = concurrency
            state.work.wake()

    async def throttle(self, queue: str, delay: float) -> None:
        with self._access.locked(queue) as (state, now):
            _throttle(state, delay, now)


def _limits(queue: QueueState, now: int) -> Limits:
    until = queue.throttled_until
    if queue.rate is not None and queue.window.started >= queue.rate.jobs:
        until = max(until, queue.window.until)
    return Limits(queue.concurrency, queue.rate, max(0, until - now) / 1000)


def _throttle(queue: QueueState, delay: float, now: int) -> None:
    queue.throttled_until = now + round(delay * 1000) if delay > 0 else 0
    if delay <= 0:
        queue.window.started = queue.window.until = 0
        queue.work.wake()
