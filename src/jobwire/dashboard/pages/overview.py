"""All queues of all stores: what is wrong first, then the figures."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobwire.counted import counted
from jobwire.dashboard import campaign_troubles, troubles
from jobwire.dashboard.board import Call
from jobwire.dashboard.latency import Latency
from jobwire.dashboard.links import OVERVIEW, link
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
MOST_TROUBLES, MOST_LISTED = 12, 500
"""Sentences of the page, and of the one that lists all."""
_UNKNOWN = Latency(None, None)


@dataclass(frozen=True, slots=True)
class Row:
    """One queue of the table."""

    store: Store
    figures: QueueFigures
    rates: Rates | None
    workers: int | None
    latency: Latency
    troubled: bool

    @property
    def rank(self) -> tuple[bool, float, int, str]:
        """The place in the table: queues with trouble first, then busy ones."""
        moving = self.rates.added + self.rates.finished if self.rates is not None else 0.0
        return (not self.troubled, -moving, -self.figures.counts.get(State.WAITING, 0), self.figures.name)


async def draw(call: Call) -> View:
    """Returns the overview of all stores or of one, or the queues whose names hold the text of `find`."""
    only = call.store() if call.given("store") else None
    stores = [only] if only is not None else list(call.board.stores.values())
    databases = [one for one in call.board.campaigns.values() if only is None or one.name == only.name]
    await asyncio.gather(*(one.fresh() for one in (*stores, *databases)))
    of_queues = (one for store in stores for one in troubles.of_store(store))
    of_campaigns = (one for database in databases for one in campaign_troubles.of_database(database))
    found = sorted((*of_queues, *of_campaigns), key=lambda one: one.weight)
    rows = sorted((row for store in stores for row in _rows(store)), key=lambda row: row.rank)
    wanted = call.given("find").casefold()
    shown = [row for row in rows if wanted in row.figures.name.casefold()]
    where = f" in {only.name}" if only is not None else ""
    most = MOST_LISTED if call.given("troubles") == "all" else MOST_TROUBLES
    return View(
        "overview.html",
        _unanswered(stores, databases) or _title(found, _well(stores, len(rows), databases), where, len(stores) > 1),
        {
            "stores": stores,
            "databases": [one for one in databases if one.name not in call.board.stores],
            "only": only,
            "troubles": found[:most],
            "more_troubles": max(0, len(found) - most),
            "all_troubles": link(OVERVIEW, troubles="all", store=call.given("store"), find=call.given("find"))
            if most < MOST_LISTED
            else "",
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
        troubled = any(troubles.of_known_queue(store, figures))
        latency = store.closer.latencies.get(name, _UNKNOWN)
        rows.append(Row(store, figures, store.rates(name), look.workers.get(name), latency, troubled))
    return rows


def _unanswered(stores: list[Store], databases: list[CampaignsDatabase]) -> str:
    """Returns a sentence if a store was not read yet, and did not fail either: then it can't be called well."""
    names = [one.name for one in (*stores, *databases) if not one.look.at and one.look.trouble is None]
    return f"No answer yet from {', '.join(dict.fromkeys(names))}" if names else ""


def _title(found: list[Trouble], well: list[str], where: str, several: bool) -> str:
    """Returns the finding, or `well` if there is none. `where` names the store if the page shows one of them."""
    if not found:
        return f"All is well{where}: {', '.join(well)}"
    if len(found) == 1:
        [one] = found
        return f"{one.sentence}, in {one.store}" if one.store and several else one.sentence
    return f"{counted(len(found), 'thing', ' needs', ' need')} attention{where}"


def _well(stores: list[Store], queues: int, databases: list[CampaignsDatabase]) -> list[str]:
    """Returns what there is in the stores."""
    words: list[str] = []
    if any(store.look.seen for store in stores):
        words.append(counted(queues, "queue") + ("" if len(stores) == 1 else f" in {len(stores)} stores"))
    if any(database.look.at for database in databases):
        number = sum(row.under_way for database in databases for row in campaign_rows(database.look))
        words.append(f"{counted(number, 'campaign')} under way")
    return words
