"""The failed jobs of a queue by class of error, so that a thousand failures read as five causes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobwire.counted import counted
from jobwire.dashboard.board import Call
from jobwire.dashboard.pages.outcome import said
from jobwire.dashboard.pages.queue import figures_of, tabs
from jobwire.dashboard.render import View
from jobwire.dashboard.selection import Found, class_of, read, selection_of
from jobwire.dashboard.values import named
from jobwire.model import Job, State

MOST = 1000
"""The newest failed jobs that are read."""
KEPT = 10.0
"""Seconds for which they are not read again, however many pages are open."""


@dataclass(slots=True)
class Cause:
    """The jobs that failed for one reason. The example is the newest of them."""

    kind: str
    example: Job
    number: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def add(self, job: Job) -> None:
        self.number += 1
        at = job.finished_at
        if at is not None:
            self.first = at if self.first is None else min(self.first, at)
            self.last = at if self.last is None else max(self.last, at)


async def draw(call: Call) -> View:
    store, queue = await call.queue()
    await store.fresh()
    chosen = selection_of({"state": State.FAILED.value})
    found = await store.kept(
        ("failures", queue.name),
        KEPT,
        lambda: read(queue, chosen, call.board.redaction, enough=MOST, most=MOST),
    )
    causes = causes_of(found)
    figures = figures_of(store, queue.name)
    return View(
        "failures.html",
        _title(named(queue.name), causes, found, figures.counts.get(State.FAILED, 0)),
        {
            "store": store,
            "queue": queue.name,
            "here": "failures",
            "figures": figures,
            "causes": causes,
            "looked_at": found.looked_at,
            "more": found.cursor is not None,
            "may_retry": any(act.verb == "retry" for act in call.acts(store, State.FAILED)),
            "said": said(call),
            **tabs(store, figures),
        },
    )


def causes_of(found: Found) -> list[Cause]:
    """Returns the causes, the most frequent first."""
    causes: dict[str, Cause] = {}
    for job in found.jobs:
        kind = class_of(job)
        causes.setdefault(kind, Cause(kind, job)).add(job)
    return sorted(causes.values(), key=lambda cause: -cause.number)


def _title(queue: str, causes: list[Cause], found: Found, failed: int) -> str:
    if not causes:
        return f"{queue}: no failed jobs"
    if found.cursor is not None:
        of_all = f"{found.looked_at:,} of {max(failed, found.looked_at):,} failures"
        return f"{queue}: {counted(len(causes), 'cause')} of the newest {of_all}"
    if len(causes) == 1:
        return f"{queue}: {counted(causes[0].number, 'job')} failed, all with {causes[0].kind}"
    return f"{queue}: {counted(len(found.jobs), 'job')} failed for {len(causes)} causes"
