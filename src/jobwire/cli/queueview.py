"""Figures of a queue, and a table of several queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from jobwire.cli.jobview import STATE_STYLES
from jobwire.cli.output import printable
from jobwire.figures import QueueFigures
from jobwire.look.words import spoken
from jobwire.model import State

COLUMNS = (State.WAITING, State.DELAYED, State.ACTIVE, State.COMPLETED, State.FAILED)


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


def table(queues: Sequence[QueueFigures]) -> Table:
    """Returns a table with a row per queue. States beyond the usual ones have a column if a queue has such jobs."""
    more = [state for state in State if state not in COLUMNS and any(queue.counts.get(state) for queue in queues)]
    states = [*COLUMNS, *more]
    shown = Table(box=None, pad_edge=False, header_style="dim")
    shown.add_column("queue", no_wrap=True)
    for state in states:
        shown.add_column(state.value.replace("_", " "), justify="right", no_wrap=True)
    shown.add_column("oldest waiting", justify="right", no_wrap=True)
    shown.add_column("", no_wrap=True)
    for queue in queues:
        shown.add_row(Text(printable(queue.name)), *(number(queue, state) for state in states), *_ends(queue))
    return shown


def number(queue: QueueFigures, state: State) -> Text:
    count = queue.counts.get(state)
    if count is None:
        return Text("–", style="dim")
    return Text(f"{count:,}", style=STATE_STYLES[state] if count else "dim")


def _ends(queue: QueueFigures) -> tuple[Text, Text]:
    age = queue.oldest_age
    return Text("" if age is None else spoken(age)), Text("paused" if queue.paused else "", style="bold yellow")
