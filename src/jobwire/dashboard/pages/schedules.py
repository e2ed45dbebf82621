"""The schedules of a queue, with their next runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jobwire.counted import counted
from jobwire.dashboard.board import Call
from jobwire.dashboard.pages.queue import figures_of, tabs
from jobwire.dashboard.render import View
from jobwire.dashboard.values import brief, named
from jobwire.look.words import ago, spoken
from jobwire.model import Schedule
from jobwire.next_runs import next_runs

MOST = 200


@dataclass(frozen=True, slots=True)
class Shown:
    """A schedule, its rule in words, and its next five times in its zone."""

    schedule: Schedule
    rule: str
    runs: Sequence[datetime]
    data: str


async def draw(call: Call) -> View:
    store, queue = await call.queue()
    await store.fresh()
    found, complete = await store.schedules(queue)
    figures = figures_of(store, queue.name)
    shown = [
        Shown(one, _rule(one), next_runs(one), brief(one.data, call.board.redaction) if one.data else "")
        for one in found[:MOST]
    ]
    return View(
        "schedules.html",
        _title(named(queue.name), shown),
        {
            "store": store,
            "queue": queue.name,
            "here": "schedules",
            "figures": figures,
            "schedules": shown,
            "left_out": max(0, len(found) - MOST),
            "complete": complete,
            **tabs(store, figures),
        },
    )


def _rule(schedule: Schedule) -> str:
    return f"every {spoken(schedule.every)}" if schedule.every is not None else f"{schedule.cron or ''}"


def _title(queue: str, shown: Sequence[Shown]) -> str:
    if not shown:
        return f"{queue}: no schedules"
    soonest = min((one.runs[0] for one in shown if one.runs), default=None)
    if soonest is None:
        return f"{queue}: {counted(len(shown), 'schedule')}"
    late = (datetime.now(UTC) - soonest).total_seconds()
    when = f"a run was due {spoken(late)} ago" if late >= 1 else f"the next run {ago(soonest)}"
    return f"{queue}: {counted(len(shown), 'schedule')}, {when}"
