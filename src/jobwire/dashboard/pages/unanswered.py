"""The frame of a queue with its last figures, for a page that the store gave no answer for."""

from __future__ import annotations

from jobwire.dashboard.board import Call
from jobwire.dashboard.pages.queue import figures_of, tabs
from jobwire.dashboard.render import View


def view(call: Call, sentence: str) -> View | None:
    """Returns the page, or None if there are no figures of the queue that the URL names."""
    store, queue = call.board.stores.get(call.given("store")), call.given("queue")
    if store is None or queue not in store.look.figures:
        return None
    figures = figures_of(store, queue)
    values = {"store": store, "queue": queue, "here": "", "state": "", "figures": figures, **tabs(store, figures)}
    return View("unanswered.html", sentence, values, 503)
