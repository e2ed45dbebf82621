"""Limits that a queue keeps for all of its workers, in its `meta` hash and its `limiter` key."""

from __future__ import annotations

from jobwire.backends.bullmq.codec import milliseconds, number
from jobwire.backends.bullmq.connection import Server
from jobwire.checks import LARGEST
from jobwire.durations import LONGEST
from jobwire.model import Limits
from jobwire.rate import Rate

_THROTTLED = 9007199254740991
"""The number that exceeds every rate limit. Throttling sets the counter to it."""


class BullLimits:
    """Implements QueueLimits."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def limits(self, queue: str) -> Limits:
        keys = self._server.keys(queue)
        (concurrency, most, duration), used, left = await self._server.store.calls(
            [("HMGET", keys.meta, "concurrency", "max", "duration"), ("GET", keys.limiter), ("PTTL", keys.limiter)]
        )
        limit = number(most)
        blocked = left > 0 and (number(used) or 0) >= (_THROTTLED if limit is None else limit)
        return Limits(
            concurrency=number(concurrency),
            rate=_rate(limit, number(duration)),
            blocked_for=left / 1000 if blocked else 0.0,
        )

    async def limit_rate(self, queue: str, rate: Rate | None) -> None:
        keys = self._server.keys(queue)
        if rate is None:
            await self._server.store.call("HDEL", keys.meta, "max", "duration")
        else:
            period = max(1, milliseconds(rate.per))
            await self._server.store.call("HSET", keys.meta, "max", rate.jobs, "duration", period)

    async def limit_concurrency(self, queue: str, concurrency: int | None) -> None:
        keys = self._server.keys(queue)
        if concurrency is None:
            await self._server.store.call("HDEL", keys.meta, "concurrency")
        else:
            await self._server.store.call("HSET", keys.meta, "concurrency", concurrency)

    async def throttle(self, queue: str, delay: float) -> None:
        keys = self._server.keys(queue)
        if delay > 0:
            await self._server.store.call("SET", keys.limiter, _THROTTLED, "PX", max(1, milliseconds(delay)))
        else:
            await self._server.store.call("DEL", keys.limiter)


def _rate(limit: int | None, period: int | None) -> Rate | None:
    """Returns the limit that is stored. None if it is not a limit: other clients may store any numbers."""
    if limit is None or limit < 1 or period is None or period < 1:
        return None
    return Rate(min(limit, LARGEST), min(period / 1000, LONGEST))
