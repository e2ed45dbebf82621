"""Parts that all requests to one dashboard share: its stores, who may use it, what it hides."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request

from jobwire.campaigns.addresses import is_database
from jobwire.connection import Connection
from jobwire.dashboard.actions import ACTS, Act
from jobwire.dashboard.bulk import Bulk
from jobwire.dashboard.callers import Auth
from jobwire.dashboard.forms import form_token
from jobwire.dashboard.redaction import Redaction
from jobwire.dashboard.store import Store
from jobwire.errors import InvalidOption
from jobwire.queue import Queue
from jobwire.serving.tokens import Caller, Role

if TYPE_CHECKING:
    from jobwire.campaigns import CampaignService
    from jobwire.dashboard.campaigns import CampaignsDatabase
    from jobwire.dashboard.history import History

Where: TypeAlias = "str | Connection | CampaignService"
"""The address of a store: a URL, or what the caller has opened. A plain URL of PostgreSQL is that of campaigns."""


class Board:
    """The stores of a dashboard, and its settings."""

    def __init__(
        self,
        stores: Mapping[str, Where],
        *,
        allow_actions: bool,
        auth: Auth,
        redact: Iterable[str],
        timeout: float,
        lake: str | None = None,
    ) -> None:
        self.stores = {
            name: Store(name, where, timeout)
            for name, where in stores.items()
            if isinstance(where, Connection) or (isinstance(where, str) and not is_database(where))
        }
        self._databases = _databases(stores, self.stores, timeout)
        self.history = _history(lake)
        self.allow_actions = allow_actions
        self.auth = auth
        self.redaction = Redaction(redact)
        self.stopping = asyncio.Event()
        self.streams = 0
        self.bulk = Bulk()

    def start(self) -> None:
        """Begins to look at the stores, if that has not happened yet: a mounted application has no start of its own."""
        for store in (*self.stores.values(), *self._databases.values()):
            store.start()

    def stop(self) -> None:
        """Ends the streams of open pages, so that a server can stop at once."""
        self.stopping.set()

    async def close(self) -> None:
        self.stop()
        await self.bulk.close()
        await asyncio.gather(*(store.close() for store in (*self.stores.values(), *self._databases.values())))
        if self.history is not None:
            await self.history.close()

    @property
    def watchable(self) -> Sequence[Store | CampaignsDatabase]:
        """All that is looked at again and again."""
        return [*self.stores.values(), *self.campaigns.values()]

    @property
    def campaigns(self) -> Mapping[str, CampaignsDatabase]:
        """The databases that have campaigns, by name."""
        return {name: database for name, database in self._databases.items() if database.found}

    def may(self, caller: Caller, needed: Role) -> bool:
        """Returns True if the caller may act in this role."""
        return self.allow_actions and caller.role.includes(needed)


def _databases(
    given: Mapping[str, Where], stores: Mapping[str, Store], timeout: float
) -> Mapping[str, CampaignsDatabase]:
    """Returns the databases of campaigns: those that were given, and those of stores whose server could have some."""
    urls = {name: store.connection.address.driver_url for name, store in stores.items()}
    if not (given.keys() - stores.keys() or any(map(is_database, urls.values()))):
        return {}
    from jobwire.dashboard.campaigns import CampaignsDatabase, service_of  # noqa: PLC0415 needs the driver

    found = {
        name: CampaignsDatabase(name, service_of(where), timeout=timeout, optional=False, owned=isinstance(where, str))
        for name, where in given.items()
        if name not in stores and not isinstance(where, Connection)
    }
    for name, url in urls.items():
        if is_database(url):
            with contextlib.suppress(InvalidOption):  # a URL that only the driver of the queues understands
                service = service_of(url, stores[name].connection.address.options.get("schema"))
                found[name] = CampaignsDatabase(name, service, timeout=timeout, optional=True, owned=True)
    return found


def _history(lake: str | None) -> History | None:
    if lake is None:
        return None
    from jobwire.dashboard.history import History  # noqa: PLC0415 needs pyarrow

    return History(lake)


@dataclass(frozen=True, slots=True)
class Call:
    """One request, with its caller."""

    board: Board
    request: Request
    caller: Caller
    cookie: str

    @property
    def token(self) -> str:
        """The token for the forms of the page."""
        return form_token(self.cookie, self.caller)

    def given(self, name: str) -> str:
        """Returns a parameter of the URL, or an empty text."""
        return self.request.query_params.get(name, "")

    def store(self, name: str | None = None) -> Store:
        """Returns the store that the URL names. Raises HTTPException 404."""
        wanted = self.given("store") if name is None else name
        found = self.board.stores.get(wanted)
        if found is None:
            raise HTTPException(404, f"There is no store {wanted!r}.")
        return found

    def database(self, name: str | None = None) -> CampaignsDatabase:
        """Returns the database of campaigns that the URL names. Raises HTTPException 404."""
        wanted = self.given("store") if name is None else name
        found = self.board.campaigns.get(wanted)
        if found is None:
            raise HTTPException(404, f"There are no campaigns in a store {wanted!r}.")
        return found

    async def queue(self) -> tuple[Store, Queue]:
        """Returns the queue that the URL names, with its store. Raises HTTPException 404, NoSuchQueue."""
        store = self.store()
        name = self.given("queue")
        if not name:
            raise HTTPException(404, "The address names no queue.")
        return store, await store.queue(name)

    def may(self, needed: Role) -> bool:
        return self.board.may(self.caller, needed)

    def acts(self, store: Store, state: str | None = None) -> list[Act]:
        """Returns what the caller may do to jobs of a state."""
        return [
            act
            for act in ACTS.values()
            if self.may(act.role)
            and (act.feature is None or store.has(act.feature))
            and (state is None or state in act.states)
        ]
