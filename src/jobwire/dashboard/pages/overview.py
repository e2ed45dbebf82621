"""All queues of all stores: what is wrong first, then the figures."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobwire.counted import counted
from jobwire.dashboard import campaign_troubles, troubles
from jobwire.dashboard.board import Call
from jobwire.dashboard.pages.campaigns import Row as CampaignRow
from jobwire.dashboard.pages.campaigns import rows_of as campaign_rows
from jobwire.dashboard.render import View
from jobwire.dashboard.series import Rates
from jobwire.dashboard.store import Store
from jobwire.dashboard.troubles import Trouble
from jobwire.figures import QueueFigures
from jobwire.model import State

if TYPE_CHECKING:
    from jobwire.dashboard.campaigns import CampaignsDatabase

MOST_ROWS = 200
MOST_CAMPAIGNS = 5
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
    databases = list(call.board.campaigns.values())
    await asyncio.gather(*(one.fresh() for one in (*stores, *databases)))
    of_queues = (one for store in stores for one in troubles.of_store(store))
    of_campaigns = (one for database in databases for one in campaign_troubles.of_database(database))
    found = sorted((*of_queues, *of_campaigns), key=lambda one: one.weight)
    rows = sorted((row for store in stores for row in _rows(store)), key=lambda row: row.rank)
    wanted = call.given("find").casefold()
    shown = [row for row in rows if wanted in row.figures.name.casefold()]
    return View(
        "overview.html",
        _unanswered(stores, databases) or _title(found, _well(stores, len(rows), databases)),
        {
            "stores": stores,
            "databases": [one for one in databases if one.name not in call.board.stores],
            "troubles": found[:MOST_TROUBLES],
            "more_troubles": max(0, len(found) - MOST_TROUBLES),
            "rows": shown[:MOST_ROWS],
            "left_out": max(0, len(shown) - MOST_ROWS) + sum(store.look.left_out for store in stores),
            "seen": any(store.look.seen for store in stores),
            "campaigns": _campaigns(databases) if not wanted else [],
            "find": call.given("find"),
            "states": (State.WAITING, State.DELAYED, State.ACTIVE, State.COMPLETED, State.FAILED),
        },
    )


def _campaigns(databases: list[CampaignsDatabase]) -> list[tuple[CampaignsDatabase, CampaignRow]]:
    """Returns the campaigns that run or are paused."""
    rows = [(database, row) for database in databases for row in campaign_rows(database.look)]
    return [(database, row) for database, row in rows if row.under_way][:MOST_CAMPAIGNS]


def _rows(store: Store) -> list[Row]:
    look = store.look
    rows: list[Row] = []
    for name, figures in look.figures.items():
        rates, workers = store.rates(name), look.workers.get(name)
        troubled = any(troubles.of_queue(store.name, figures, rates, workers, troubles.bins_of(store, name)))
        rows.append(Row(store, figures, rates, workers, troubled))
    return rows


def _unanswered(stores: list[Store], databases: list[CampaignsDatabase]) -> str:
    """Returns a sentence if a store was not read yet, and did not fail either: then it can't be called well."""
    names = [one.name for one in (*stores, *databases) if not one.look.at and one.look.trouble is None]
    return f"No answer yet from {', '.join(dict.fromkeys(names))}" if names else ""


def _title(found: list[Trouble], well: list[str]) -> str:
    """Returns the finding, or `well` if there is none."""
    if not found:
        return f"All is well: {', '.join(well)}"
    if len(found) == 1:
        return found[0].sentence
    return f"{counted(len(found), 'thing', ' needs', ' need')} attention"


def _well(stores: list[Store], queues: int, databases: list[CampaignsDatabase]) -> list[str]:
    """Returns what there is in the stores."""
    words: list[str] = []
    if any(store.look.seen for store in stores):
        words.append(counted(queues, "queue") + ("" if len(stores) == 1 else f" in {len(stores)} stores"))
    if any(database.look.at for database in databases):
        number = sum(row.under_way for database in databases for row in campaign_rows(database.look))
        words.append(f"{counted(number, 'campaign')} under way")
    return words
