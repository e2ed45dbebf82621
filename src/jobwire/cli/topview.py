"""The figures of `jobwire top`: counts of queues, and their changes from one look to the next."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from jobwire.boundary import Feature
from jobwire.cli import queueview
from jobwire.cli.fitted import Column, FittedTable
from jobwire.cli.output import printable
from jobwire.cli.queueview import RANKS, number
from jobwire.cli.queueview import record as figures_record
from jobwire.connection import Connection
from jobwire.errors import NotSupported
from jobwire.figures import QueueFigures, figures_of
from jobwire.look.words import spoken
from jobwire.model import State


@dataclass(frozen=True, slots=True)
class Watched:
    """A queue at one look. Rates are per second since the look before, None at the first."""

    figures: QueueFigures
    added: float | None = None
    finished: float | None = None
    failed: float | None = None
    workers: int | None = None
    """None if the protocol has no list of workers."""


class Watch:
    """Looks at the queues of a store again and again."""

    def __init__(self, connection: Connection, queues: Sequence[str]) -> None:
        self._connection = connection
        self._queues = queues
        self._before: dict[str, tuple[float, Mapping[State, int]]] = {}

    @property
    def title(self) -> str:
        return f"{self._connection.address.redacted}   {datetime.now().astimezone():%H:%M:%S}   q: quit"

    async def look(self) -> list[Watched]:
        """Returns the queues as they are now, busy ones first."""
        names = self._queues or await self._connection.queues()
        seen = [await self._watched(figures) for figures in await figures_of(self._connection, names)]
        return sorted(seen, key=lambda one: (-(one.added or 0) - (one.finished or 0), one.figures.name))

    async def _watched(self, figures: QueueFigures) -> Watched:
        now = time.monotonic()
        before = self._before.get(figures.name)
        self._before[figures.name] = now, figures.counts
        workers = await self._workers(figures.name)
        if before is None:
            return Watched(figures, workers=workers)
        then, counts = before
        passed = max(now - then, 0.001)
        change = {state: figures.counts[state] - counts.get(state, 0) for state in figures.counts}
        failed = max(0, change.get(State.FAILED, 0))
        finished = max(0, change.get(State.COMPLETED, 0)) + failed
        added = max(0, sum(change.values()))
        return Watched(figures, added / passed, finished / passed, failed / passed, workers)

    async def _workers(self, queue: str) -> int | None:
        backend = self._connection.backend
        if not backend.capabilities.has(Feature.WORKERS) or backend.workers is None:
            return None
        try:
            return len(await backend.workers.workers(queue))
        except NotSupported:
            return None


def record(watched: Watched) -> dict[str, Any]:
    """Returns the figures as JSON values."""
    rates = {"added": watched.added, "finished": watched.finished, "failed": watched.failed}
    return {
        **figures_record(watched.figures),
        "per_second": {name: None if rate is None else round(rate, 2) for name, rate in rates.items()},
        "workers": watched.workers,
    }


def frame(seen: Sequence[Watched], *, title: str = "") -> RenderableType:
    """Returns one frame: a row per queue."""
    columns = [
        Column("in/s", cells=[_rate(one.added, "yellow") for one in seen]),
        Column("out/s", cells=[_rate(one.finished, "green") for one in seen]),
        Column("fail/s", cells=[_rate(one.failed, "red") for one in seen]),
        *(
            Column(state.value, RANKS[state], cells=[number(one.figures, state) for one in seen])
            for state in queueview.COLUMNS
        ),
        Column("oldest", 1, cells=[_age(one) for one in seen]),
        Column("workers", 1, cells=[_workers(one) for one in seen]),
        Column("", left=True, cells=[Text("paused" if one.figures.paused else "", "bold yellow") for one in seen]),
    ]
    table = FittedTable([Text(printable(one.figures.name)) for one in seen], columns, fill=bool(title))
    if not title:
        return table
    return Group(Text(title, style="bold"), Text(), table if seen else Text("no queues", style="dim"))


def _age(watched: Watched) -> Text:
    age = watched.figures.oldest_age
    return Text("" if age is None else spoken(age))


def _workers(watched: Watched) -> Text:
    return Text("–" if watched.workers is None else str(watched.workers), style="" if watched.workers else "dim")


def _rate(rate: float | None, style: str) -> Text:
    if not rate:
        return Text("–" if rate is None else "0", style="dim")
    return Text(f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}", style=style)
