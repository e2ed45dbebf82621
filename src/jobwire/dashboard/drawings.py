"""Drawings of open pages, shared by all browsers that have the same page open.

A look at a store wakes all of them at the same moment. The first draws the page, and the others take its drawing. Only
the token of the forms belongs to one browser: a shared drawing has another in its place, which is then replaced.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from markupsafe import Markup

from jobwire.dashboard.board import Call
from jobwire.dashboard.forms import new_cookie
from jobwire.dashboard.render import View, parts

Draw = Callable[[Call], Awaitable[View]]
_GONE, _UNAVAILABLE = 400, 500
"""Statuses: from the first on there is no such page any more, from the second on it can't be drawn at the moment."""
_FRESH = 1.0
"""Seconds for which a drawing is taken, if there was no look since: the ages in it grow."""


class LookOf(Protocol):
    """The last look at something."""

    @property
    def at(self) -> float: ...

    @property
    def trouble(self) -> str | None: ...


class Watchable(Protocol):
    """Something that is looked at again and again, more often while a page is open."""

    @property
    def look(self) -> LookOf: ...

    def watch(self) -> None: ...

    def unwatch(self) -> None: ...

    async def next_look(self, within: float) -> None: ...


@dataclass(frozen=True, slots=True)
class _Drawing:
    at: float
    task: asyncio.Task[Mapping[str, str]]

    @property
    def fresh(self) -> bool:
        return time.monotonic() - self.at < _FRESH


class Drawings:
    """The last drawings, by page, role and look."""

    def __init__(self) -> None:
        self._cookie = new_cookie()
        self._made: dict[object, _Drawing] = {}

    async def of(self, call: Call, draw: Draw, stores: Sequence[Watchable]) -> Mapping[str, str]:
        """Returns the parts of the page that may change, by name, and its title."""
        shared = replace(call, cookie=self._cookie, caller=replace(call.caller, name=None))
        looks = tuple((store.look.at, store.look.trouble) for store in stores)
        key = call.request.url.path, call.request.url.query, call.caller.role, looks
        made = self._made.get(key)
        if made is None or not made.fresh:
            self._made = {other: one for other, one in self._made.items() if one.fresh or not one.task.done()}
            made = self._made[key] = _Drawing(time.monotonic(), asyncio.create_task(_drawn(shared, draw)))
        found = await asyncio.shield(made.task)
        return {name: html.replace(shared.token, call.token) for name, html in found.items()}

    def close(self) -> None:
        for one in self._made.values():
            one.task.cancel()


async def _drawn(call: Call, draw: Draw) -> Mapping[str, str]:
    view = await draw(call)
    changing = parts(view, call)
    problem = Markup("")
    if view.status >= _GONE and "stale" not in changing:
        gone = Markup(" data-gone") if view.status < _UNAVAILABLE else ""
        problem = Markup('<p class="stale" role="status"{}>{}</p>').format(gone, view.title)
    # A store that does not answer leaves the title as it was: it states the last figures.
    title = {} if view.status >= _UNAVAILABLE else {"title": view.title}
    return {**title, "problem": problem, **changing}
