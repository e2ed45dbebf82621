"""All queues of all stores: what is wrong first, then the figures."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from jobwire.counted import counted
from jobwire.dashboard import troubles
from jobwire.dashboard.board import Call
from jobwire.dashboard.render import View
from jobwire.dashboard.series import Rates
from jobwire.dashboard.store import Store
from jobwire.dashboard.troubles import Trouble
from jobwire.figures import QueueFigures
from jobwire.model import State

MOST_ROWS = 200
MOST_TROUBLES = 12


@dataclass(frozen=True, slots=True)
class Row:
    """One queue of the table."""

    store: Store
    figures: QueueFigures
    rates: Rates | None
    workers: int | None
    troubled: bool

    @property
    def rank(self) -> tuple[bool, float, int, str]:
        """The place in the table: queues with trouble first, then busy ones."""
        moving = self.rates.added + self.rates.finished if self.rates is not None else 0.0
        return (not self.troubled, -moving, -self.figures.counts.get(State.WAITING, 0), self.figures.name)


async def draw(call: Call) -> View:
    """Returns the overview, or the queues whose names hold the text of `find`."""
    stores = list(call.board.stores.values())
    await asyncio.gather(*(store.fresh() for store in stores))
    found = sorted((one for store in stores for one in troubles.of_store(store)), key=lambda one: one.weight)
    rows = sorted((row for store in stores for row in _rows(store)), key=lambda row: row.rank)
    wanted = call.given("find").casefold()
    shown = [row for row in rows if wanted in row.figures.name.casefold()]
    return View(
        "overview.html",
        _title(found, len(rows), stores),
        {
            "stores": stores,
            "troubles": found[:MOST_TROUBLES],
            "more_troubles": max(0, len(found) - MOST_TROUBLES),
            "rows": shown[:MOST_ROWS],
            "left_out": max(0, len(shown) - MOST_ROWS) + sum(store.look.left_out for store in stores),
            "find": call.given("find"),
            "states": (State.WAITING, State.DELAYED, State.ACTIVE, State.COMPLETED, State.FAILED),
        },
    )


def _rows(store: Store) -> list[Row]:
    look = store.look
    rows: list[Row] = []
    for name, figures in look.figures.items():
        rates, workers = store.rates(name), look.workers.get(name)
        troubled = any(troubles.of_queue(store.name, figures, rates, workers))
        rows.append(Row(store, figures, rates, workers, troubled))
    return rows


def _title(found: list[Trouble], queues: int, stores: list[Store]) -> str:
    if not found:
        silent = [store.name for store in stores if not store.look.seen]
        if silent:
            return f"No answer yet from {', '.join(silent)}"
        where = "" if len(stores) == 1 else f" in {len(stores)} stores"
        return f"All is well: {counted(queues, 'queue')}{where}"
    if len(found) == 1:
        return found[0].sentence
    return f"{counted(len(found), 'thing', ' needs', ' need')} attention"
