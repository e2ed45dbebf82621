"""Figures of many queues: one script for each, a hundred of them per round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from jobwire.backends.bullmq.connection import Server
from jobwire.backends.bullmq.operate.read import COUNTED
from jobwire.boundary import QueueFigures, Reading


async def figures(server: Server, queues: Sequence[str]) -> Reading:
    """Returns exact counts: the containers know their sizes."""
    answers: list[list[Any]] = await asyncio.gather(
        *(server.scripts.run_together("figures", [server.keys(queue).base], ()) for queue in queues)
    )
    return Reading([_figures(queue, answer) for queue, answer in zip(queues, answers, strict=True)])


def _figures(queue: str, answer: list[Any]) -> QueueFigures:
    *numbers, paused, oldest = answer
    at = _time(float(oldest)) if oldest else None
    return QueueFigures(queue, dict(zip(COUNTED, numbers, strict=True)), at, bool(paused))


def _time(ms: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # other clients may store any number
        return None
