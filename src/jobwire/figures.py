"""Exact figures of queues, read without opening them: opening may register a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from jobwire.boundary import Feature, QueueFigures
from jobwire.connection import Connection
from jobwire.errors import StoreRefused
from jobwire.model import State

_AT_ONCE = 8


async def figures_of(connection: Connection, names: Sequence[str]) -> list[QueueFigures]:
    """Reads the figures of queues, several at the same time, with exact counts. The oldest waiting job is the next one,
    or the last in line if that was added earlier. Opens no Queue, which would register it.

    A queue that the store can't read, since a program has put something else in its place, does not hide the others.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(name: str) -> QueueFigures:
        async with slots:
            try:
                return await _figures(connection, name)
            except StoreRefused as error:
                if len(names) == 1:
                    raise
                return QueueFigures(name, {}, None, None, refused=str(error))

    return list(await asyncio.gather(*map(read, names)))


async def _figures(connection: Connection, name: str) -> QueueFigures:
    backend = connection.backend
    counts = await backend.counts(name)
    oldest: datetime | None = None
    if counts.get(State.WAITING):
        ends = [await backend.jobs(name, State.WAITING, 1, None, reverse=end) for end in (False, True)]
        times = [job.created_at for page in ends for job in page if job.created_at is not None]
        oldest = min(times, default=None)
    can_pause = backend.pause if backend.capabilities.has(Feature.PAUSE) else None
    return QueueFigures(name, counts, oldest, await can_pause.paused(name) if can_pause is not None else None)
