"""One queue: its counts, its last hour, pause and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from jobwire.boundary import Feature
from jobwire.counted import counted
from jobwire.dashboard import troubles
from jobwire.dashboard.board import Call
from jobwire.dashboard.pages.outcome import said
from jobwire.dashboard.pictures import sparkline
from jobwire.dashboard.render import View
from jobwire.dashboard.selection import read, selection_of
from jobwire.dashboard.series import Bin, Rates, Series, minutes_of
from jobwire.dashboard.store import Store
from jobwire.dashboard.values import named
from jobwire.errors import StoreUnavailable
from jobwire.figures import QueueFigures
from jobwire.model import Job, State
from jobwire.queue import Queue

MOST_FAILED = 5
"""Failed jobs that the page of a queue shows."""
_KEEPS_UP = 0.8
"""Share of the added jobs that must finish in a queue that keeps up."""


async def draw(call: Call) -> View:
    store, queue = await call.queue()
    look, limits, paused = await asyncio.gather(
        store.fresh(), store.part(Feature.LIMITS, queue.admin.limits), store.part(Feature.PAUSE, queue.admin.paused)
    )
    known = figures_of(store, queue.name)
    figures = known if paused is None else replace(known, paused=paused)
    failed = await _newest_failures(call, store, queue) if figures.counts.get(State.FAILED) else ()
    rates = store.rates(queue.name)
    bins = store.series.get(queue.name, Series()).last_hour(look.at)
    return View(
        "queue.html",
        title_of(figures, rates),
        {
            "store": store,
            "queue": queue.name,
            "here": "queue",
            "figures": figures,
            "rates": rates,
            "workers": look.workers.get(queue.name),
            "latency": store.closer.latencies.get(queue.name),
            "troubles": list(troubles.of_known_queue(store, figures)),
            "limits": limits,
            "failed": failed,
            "bulk": next(call.board.bulk.of_queue(store.name, queue.name), None),
            "said": said(call),
            "charts": _charts(bins, rates),
            "period": _period(bins),
            **tabs(store, figures),
        },
    )


async def _newest_failures(call: Call, store: Store, queue: Queue) -> Sequence[Job]:
    chosen = selection_of({"state": State.FAILED.value})
    try:
        found = await store.ask(lambda: read(queue, chosen, call.board.redaction, enough=MOST_FAILED, most=MOST_FAILED))
    except StoreUnavailable:
        if store.look.trouble is None:
            raise
        return ()
    return found.jobs[:MOST_FAILED]


def tabs(store: Store, figures: QueueFigures) -> dict[str, object]:
    """Returns the values of the row of states that the pages of a queue have."""
    usual = (State.WAITING, State.DELAYED, State.ACTIVE, State.COMPLETED, State.FAILED)
    more = [state for state in State if state not in usual and figures.counts.get(state)]
    return {
        "tabs": [(state, figures.counts.get(state)) for state in (*usual, *more) if state in figures.counts],
        "features": {
            "workers": store.has(Feature.WORKERS),
            "schedules": store.has(Feature.SCHEDULES),
            "events": store.has(Feature.EVENTS),
            "pause": store.has(Feature.PAUSE),
            "names": store.has(Feature.JOB_NAMES),
        },
    }


def figures_of(store: Store, queue: str) -> QueueFigures:
    """Returns the last figures of a queue, or empty ones."""
    return store.look.figures.get(queue) or QueueFigures(queue, {}, None, None)


def title_of(figures: QueueFigures, rates: Rates | None = None) -> str:
    """Returns the finding about a queue, such as "mail: 312 jobs wait, the oldest for 4 min"."""
    name = named(figures.name)
    waiting, active = figures.counts.get(State.WAITING, 0), figures.counts.get(State.ACTIVE, 0)
    held = waiting + figures.counts.get(State.PAUSED, 0)
    if figures.paused:
        return f"{name} is paused" + (f"; {counted(held, 'job', ' waits', ' wait')}" if held else "")
    if waiting:
        if figures.oldest_age is None:
            return f"{name}: {counted(waiting, 'job', ' waits', ' wait')}"
        return f"{name}: {troubles.waiting_for(waiting, figures.oldest_age)}"
    if rates is not None and rates.finished >= 1:
        return f"{name}{_pace(rates)}"
    if active:
        return f"{name}: {counted(active, 'job', ' runs', ' run')} and none wait"
    if parents := figures.counts.get(State.WAITING_CHILDREN, 0):
        return f"{name}: {counted(parents, 'job', ' waits for its', ' wait for their')} children"
    failed = figures.counts.get(State.FAILED, 0)
    return f"{name} is idle" + (f"; {counted(failed, 'job', ' has', ' have')} failed" if failed else "")


def _pace(rates: Rates) -> str:
    """Returns how a queue in which no job waits does. If fewer jobs finish than are added, the others are delayed: when
    they are added, or for another attempt."""
    failing = f"{rates.failed:,.0f} of {rates.finished:,.0f} jobs a minute fail"
    if rates.failure_share is not None and rates.failure_share >= troubles.MANY_FAIL:
        return f": {failing}"
    if rates.finished < rates.added * _KEEPS_UP:
        return f": {rates.added:,.0f} jobs a minute are added and {rates.finished:,.0f} finish"
    return f" keeps up: {rates.finished:,.0f} jobs a minute" + (
        f", {rates.failed:,.0f} of them {'fails' if round(rates.failed) == 1 else 'fail'}" if rates.failed >= 1 else ""
    )


def _per_minute(rate: float | None) -> str:
    if rate is None:
        return "–"
    return f"{rate:,.0f} / min" if rate >= 10 or rate == 0 else f"{rate:.1f} / min"


def _charts(bins: Sequence[Bin], rates: Rates | None) -> list[tuple[str, str, Markup]]:
    """Returns the charts: a name, the figure of now, a picture. The half minutes at both ends are not whole, so they
    have no rate."""
    over = bins[1:-1] or bins
    waiting = sparkline(bins, lambda one: one.waiting, "Waiting jobs over the last hour", "plain")
    added = sparkline(over, lambda one: one.added, "Added jobs over the last hour", "plain")
    finished = sparkline(over, lambda one: one.completed + one.failed, "Finished jobs over the last hour", "good")
    failed = sparkline(over, lambda one: one.failed, "Failed jobs over the last hour", "bad")
    return [
        ("Waiting", f"{bins[-1].waiting:,} now" if bins else "–", waiting),
        ("Added", _per_minute(rates and rates.added), added),
        ("Finished", _per_minute(rates and rates.finished), finished),
        ("Failed", _per_minute(rates and rates.failed), failed),
    ]


def _period(bins: Sequence[Bin]) -> str:
    """Returns a sentence about the time that the charts show."""
    minutes = minutes_of(bins)
    if minutes >= 59:
        return "The last hour. Jobs that are deleted at their end are not seen as finished."
    return f"The last {max(1, round(minutes))} min, since the dashboard looks. It keeps an hour."
