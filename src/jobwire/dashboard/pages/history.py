"""Days and weeks, from the pipeline's tables: jobs that finished, how long they waited and ran, why runs failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from starlette.exceptions import HTTPException

from jobwire.counted import counted
from jobwire.dashboard.board import Call
from jobwire.dashboard.charts import LEVELS, durations, failed, small_bars, stacked
from jobwire.dashboard.history_figures import Period, Point, QueueHistory, StillReading
from jobwire.dashboard.render import View
from jobwire.look.words import measured

DAYS = (1, 7, 30, 90)
_DEFAULT = 7


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture under a title that states what it shows."""

    title: str
    picture: Markup
    legend: Sequence[str]
    """The kinds of bars or lines, by their classes in the style sheet."""


async def draw(call: Call) -> View:
    history = call.board.history
    if history is None:
        raise HTTPException(404, "This dashboard has no history: start it with --lake and the pipeline's folder.")
    days, queue, source = _days(call.given("days")), call.given("queue"), call.given("source")
    values = {"lake": history.root, "days": days, "choices": DAYS, "queue": queue, "source": source, "period": None}
    try:
        found = await history.period(days, source, queue)
    except StillReading:
        return View("history.html", "The history is being read", {**values, "reading": True})
    if found is None:
        title = f"The history has nothing about {queue}" if queue else "The history is empty"
        return View("history.html", title, {**values, "reading": False})
    one = found.queues[0] if queue and len(found.queues) == 1 else None
    return View(
        "history.html",
        _title(found, one),
        {
            **values,
            "period": found,
            "reading": False,
            "one": one,
            "queues": [(row, _bars([point.finished for point in row.points], "good")) for row in found.queues],
            "several": len({row.store for row in found.queues}) > 1,
            "failures": [(row, _bars(row.per_day, "bad")) for row in found.failures],
            "charts": _charts(found.totals if one is None else one.points, one, by_hours=found.by_hours),
        },
    )


def _days(text: str) -> int:
    return int(text) if text in map(str, DAYS) else _DEFAULT


def _charts(points: Sequence[Point], one: QueueHistory | None, *, by_hours: bool) -> list[Chart]:
    unit, during = ("hour", "in") if by_hours else ("day", "on")

    def when(point: Point) -> str:
        return f"{point.at:%H:%M}" if by_hours else f"{point.at.day} {point.at:%b}"

    best, worst = max(points, key=lambda point: point.finished), max(points, key=lambda point: point.failed)
    busiest = f"{counted(best.finished, 'job')} finished {during} the busiest {unit}, {when(best)}"
    charts = [Chart(busiest, stacked(points, f"Finished jobs by {unit}"), ("completed", "failed"))]
    if one is None and worst.failed:
        title = f"{counted(worst.failed, 'job')} failed {during} the worst {unit}, {when(worst)}"
        charts.append(Chart(title, failed(points, f"Failed jobs by {unit}"), ("failed",)))
    if one is not None and one.wait is not None:
        picture = durations(points, lambda point: point.wait, f"Waiting time by {unit}")
        charts.append(Chart(f"19 of 20 runs waited at most {measured(one.wait.p95)}", picture, LEVELS[::-1]))
    if one is not None and one.run is not None:
        picture = durations(points, lambda point: point.run, f"Running time by {unit}")
        charts.append(Chart(f"19 of 20 runs took at most {measured(one.run.p95)}", picture, LEVELS[::-1]))
    return charts


def _bars(numbers: Sequence[int], kind: str) -> Markup:
    words = "Finished jobs over the period" if kind == "good" else "Failed runs over the period"
    return small_bars(numbers, words, kind)


def _title(found: Period, one: QueueHistory | None) -> str:
    points = found.totals if one is None else one.points
    finished, lost = sum(point.finished for point in points), sum(point.failed for point in points)
    what = one.queue if one is not None else counted(len(found.queues) + found.left_out, "queue")
    length = counted(len(points), "hour" if found.by_hours else "day")
    share = f", {lost / finished:.1%} of them failed" if lost else ""
    return f"{what}: {counted(finished, 'job')} finished in {length}{share}"
