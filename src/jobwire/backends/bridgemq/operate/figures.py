"""Figures of many job types: one script for a hundred of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.bridgemq.operate.read import COUNTED
from jobwire.backends.bridgemq.upkeep.reindex import READERS_STEPS, Reindex
from jobwire.boundary import QueueFigures, Reading

_STEP = 100
_WIDTH = len(COUNTED) + 2


async def figures(namespace: Namespace, queues: Sequence[str]) -> Reading:
    """Returns exact counts, by the index, which is first updated after changes by peers."""
    keys = namespace.keys
    await Reindex(namespace.scripts, keys).run(READERS_STEPS)
    paused = {name.decode(errors="replace") for name in await namespace.store.call("SMEMBERS", keys.paused)}
    found: list[QueueFigures] = []
    for first in range(0, len(queues), _STEP):
        some = queues[first : first + _STEP]
        flat: list[Any] = await namespace.scripts.run("figures", [keys.base], some)
        for number, queue in enumerate(some):
            *counts, head, tail = flat[number * _WIDTH : (number + 1) * _WIDTH]
            times = [at for at in (_added(head), _added(tail)) if at is not None]
            is_paused = not paused.isdisjoint({queue, "*"})
            figures = QueueFigures(queue, dict(zip(COUNTED, counts, strict=True)), min(times, default=None), is_paused)
            found.append(figures)
    return Reading(found)


def _added(data: bytes) -> datetime | None:
    """Returns the time at which the job of this data was added."""
    document = codec.parse(data) if data else None
    return codec.from_ms(document.get("createdAt")) if document is not None else None
