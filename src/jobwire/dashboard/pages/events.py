"""The last events of a queue."""

from __future__ import annotations

from collections import Counter
from typing import Any

from jobwire.boundary import Feature
from jobwire.counted import counted
from jobwire.dashboard.board import Call
from jobwire.dashboard.pages.queue import figures_of, tabs
from jobwire.dashboard.redaction import HIDDEN, Redaction
from jobwire.dashboard.render import View
from jobwire.dashboard.values import brief, named
from jobwire.model import Event

_LONGEST = 80
"""Characters of one field."""


def _detail(event: Event, hide: Redaction) -> str:
    """Returns what the other columns do not show: the error, or the native fields without the id of the job."""
    if event.error:
        return hide.text(event.error)
    fields = {name: value for name, value in event.data.items() if value != event.job_id}
    return ", ".join(f"{name} {_field(name, value, hide)}" for name, value in fields.items())


def _field(name: str, value: Any, hide: Redaction) -> str:
    if hide.hides(name):
        return HIDDEN
    return hide.text(value, _LONGEST) if isinstance(value, str) else brief(value, hide, _LONGEST)


async def draw(call: Call) -> View:
    store, queue = await call.queue()
    queue.capabilities.require(Feature.EVENTS)
    found = await store.ask(store.tail(queue).events)
    hide = call.board.redaction
    figures = figures_of(store, queue.name)
    kinds = Counter(event.kind for event in found)
    wanted = call.given("kind")
    rows = [(event, _detail(event, hide)) for event in found if wanted in ("", event.kind)]
    return View(
        "events.html",
        _title(named(queue.name), len(rows), wanted.replace("_", " ")),
        {
            "store": store,
            "queue": queue.name,
            "here": "events",
            "figures": figures,
            "rows": rows,
            "kinds": sorted(kinds.items()),
            "kind": wanted,
            **tabs(store, figures),
        },
    )


def _title(queue: str, number: int, kind: str) -> str:
    what = f"{kind} event" if kind else "event"
    return f"{queue}: the last {counted(number, what)}" if number else f"{queue}: no {what}s yet"
