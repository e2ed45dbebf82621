"""Figures of many job types: a few scripts for each, a hundred of them per round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.bridgemq.operate.read import COUNTED
from jobwire.backends.bridgemq.upkeep.reindex import READERS_STEPS, Reindex
from jobwire.boundary import QueueFigures, Reading
from jobwire.model import State

_ENDS = ("up", "down")


async def figures(namespace: Namespace, queues: Sequence[str]) -> Reading:
    """Returns exact counts, by the index, which is first updated after changes by peers."""
    keys = namespace.keys
    await Reindex(namespace.scripts, keys).run(READERS_STEPS)
    paused = {name.decode(errors="replace") for name in await namespace.store.call("SMEMBERS", keys.paused)}
    all_paused = "*" in paused

    async def read(queue: str) -> QueueFigures:
        numbers = await namespace.scripts.run_together("counts", [keys.base], [queue])
        counts: dict[State, int] = dict(zip(COUNTED, numbers, strict=True))
        ends = await asyncio.gather(*(_first(namespace, queue, order) for order in _ENDS[: counts[State.WAITING]]))
        jobs = [job for job in ends if job is not None]
        oldest = min((job.created_at for job in jobs if job.created_at is not None), default=None)
        return QueueFigures(queue, counts, oldest, all_paused or queue in paused)

    return Reading(await asyncio.gather(*map(read, queues)))


async def _first(namespace: Namespace, queue: str, order: str) -> Any:
    """Returns the first waiting job of a type in an order, or None."""
    _, row = await namespace.scripts.run_together("page", [namespace.keys.base], [queue, "type", order, 1, "", "", 0])
    return codec.read_row(queue, row) if row else None
