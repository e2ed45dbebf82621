"""Parts that all requests to one dashboard share: its stores, who may use it, what it hides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request

from jobwire.connection import Connection
from jobwire.dashboard.actions import ACTS, Act
from jobwire.dashboard.callers import Auth
from jobwire.dashboard.forms import form_token
from jobwire.dashboard.redaction import Redaction
from jobwire.dashboard.store import Store
from jobwire.queue import Queue
from jobwire.serving.tokens import Caller, Role


class Board:
    """The stores of a dashboard, and its settings."""

    def __init__(
        self,
        stores: Mapping[str, str | Connection],
        *,
        allow_actions: bool,
        auth: Auth,
        redact: Iterable[str],
        timeout: float,
    ) -> None:
        self.stores = {name: Store(name, where, timeout) for name, where in stores.items()}
        self.allow_actions = allow_actions
        self.auth = auth
        self.redaction = Redaction(redact)
        self.stopping = asyncio.Event()
        self.streams = 0

    def start(self) -> None:
        """Begins to look at the stores, if that has not happened yet: a mounted application has no start of its own."""
        for store in self.stores.values():
            store.start()

    def stop(self) -> None:
        """Ends the streams of open pages, so that a server can stop at once."""
        self.stopping.set()

    async def close(self) -> None:
        self.stop()
        await asyncio.gather(*(store.close() for store in self.stores.values()))

    def may(self, caller: Caller, needed: Role) -> bool:
        """Returns True if the caller may act in this role."""
        return self.allow_actions and caller.role.includes(needed)


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
