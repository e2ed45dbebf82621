"""The last events of a queue."""

from __future__ import annotations

from jobwire.boundary import Feature
from jobwire.counted import counted
from jobwire.dashboard.board import Call
from jobwire.dashboard.pages.queue import figures_of, tabs
from jobwire.dashboard.render import View
from jobwire.dashboard.values import brief


async def draw(call: Call) -> View:
    store, queue = await call.queue()
    queue.capabilities.require(Feature.EVENTS)
    found = await store.ask(store.tail(queue).events)
    hide = call.board.redaction
    figures = figures_of(store, queue.name)
    rows = [(event, hide.text(event.error) if event.error else brief(dict(event.data), hide, 160)) for event in found]
    return View(
        "events.html",
        f"{queue.name}: the last {counted(len(rows), 'event')}" if rows else f"{queue.name}: no events yet",
        {
            "store": store,
            "queue": queue.name,
            "here": "events",
            "figures": figures,
            "rows": rows,
            **tabs(store, figures),
        },
    )
