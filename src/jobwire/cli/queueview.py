"""Figures of a queue, and a table of several queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from jobwire.cli.fitted import Column, FittedTable
from jobwire.cli.jobview import STATE_STYLES
from jobwire.cli.output import printable
from jobwire.figures import QueueFigures
from jobwire.look.words import spoken
from jobwire.model import State

COLUMNS = (State.WAITING, State.DELAYED, State.ACTIVE, State.COMPLETED, State.FAILED)
RANKS = {State.WAITING: 0, State.ACTIVE: 2, State.FAILED: 3, State.DELAYED: 4, State.COMPLETED: 5}
"""The order in which a narrow terminal loses columns, the largest number first."""


def record(figures: QueueFigures) -> dict[str, Any]:
    """Returns the figures as JSON values."""
    age = figures.oldest_age
    return {
        "queue": figures.name,
        "counts": {state.value: number for state, number in figures.counts.items()},
        "oldest_waiting": figures.oldest.isoformat() if figures.oldest is not None else None,
        "oldest_waiting_seconds": None if age is None else round(age, 3),
        "paused": figures.paused,
    }


def table(queues: Sequence[QueueFigures]) -> FittedTable:
    """Returns a table with a row per queue. States beyond the usual ones have a column if a queue has such jobs."""
    more = [state for state in State if state not in COLUMNS and any(queue.counts.get(state) for queue in queues)]
    columns = [
        Column(
            state.value.replace("_", " "),
            RANKS.get(state, len(RANKS)),
            cells=[number(queue, state) for queue in queues],
        )
        for state in (*COLUMNS, *more)
    ]
    ends = [_ends(queue) for queue in queues]
    columns += [
        Column("oldest waiting", 1, cells=[age for age, _ in ends]),
        Column("", 0, left=True, cells=[paused for _, paused in ends]),
    ]
    return FittedTable([Text(printable(queue.name)) for queue in queues], columns)


def number(queue: QueueFigures, state: State) -> Text:
    count = queue.counts.get(state)
    if count is None:
        return Text("–", style="dim")
    return Text(f"{count:,}", style=STATE_STYLES[state] if count else "dim")


def _ends(queue: QueueFigures) -> tuple[Text, Text]:
    age = queue.oldest_age
    return Text("" if age is None else spoken(age)), Text("paused" if queue.paused else "", style="bold yellow")
