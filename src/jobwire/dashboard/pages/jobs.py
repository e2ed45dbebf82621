"""The jobs of a queue in one state, page by page, with filters."""

from __future__ import annotations

from jobwire.counted import counted
from jobwire.dashboard.at_least import AtLeast
from jobwire.dashboard.board import Call
from jobwire.dashboard.links import link
from jobwire.dashboard.pages.outcome import said
from jobwire.dashboard.pages.queue import figures_of, tabs
from jobwire.dashboard.render import View
from jobwire.dashboard.selection import Found, Selection, read, selection_of
from jobwire.dashboard.values import named
from jobwire.figures import QueueFigures


async def draw(call: Call) -> View:
    chosen = selection_of(call.request.query_params)
    store, queue = await call.queue()
    await store.fresh()
    cursor = call.given("cursor") or None
    found = await store.ask(lambda: read(queue, chosen, call.board.redaction, cursor))
    figures = figures_of(store, queue.name)
    where = {"store": store.name, "queue": queue.name}
    return View(
        "jobs.html",
        _title(named(queue.name), chosen, found, figures, is_whole=not cursor and found.cursor is None),
        {
            "store": store,
            "queue": queue.name,
            "here": "jobs",
            "figures": figures,
            "chosen": chosen,
            "state": chosen.state,
            "jobs": found.jobs,
            "looked_at": found.looked_at,
            "next": link("jobs", **where, **chosen.given, cursor=found.cursor) if found.cursor else None,
            "first": link("jobs", **where, **chosen.given) if cursor else None,
            "acts": call.acts(store, chosen.state),
            "said": said(call),
            **tabs(store, figures),
        },
    )


def _title(queue: str, chosen: Selection, found: Found, figures: QueueFigures, *, is_whole: bool) -> str:
    state = chosen.state.value.replace("_", " ")
    if chosen:
        if found.cursor is not None:
            return f"{queue}: {len(found.jobs):,} of the {found.looked_at:,} {state} jobs looked at match"
        return f"{queue}: {counted(len(found.jobs), f'{state} job', ' matches', ' match')}"
    # The jobs were read after the last look, so its count may be older.
    shown = len(found.jobs)
    number = shown if is_whole else max(figures.counts.get(chosen.state, 0), AtLeast(shown))
    return f"{queue}: {counted(number, f'{state} job')}"
