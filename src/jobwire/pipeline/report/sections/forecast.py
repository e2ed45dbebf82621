"""The time until queues are empty, and how many jobs must run at a time."""

from __future__ import annotations

from datetime import timedelta

from jobwire.pipeline.report.frames import Frames
from jobwire.pipeline.report.parts import Cell, Grid, Section
from jobwire.pipeline.report.wording import count, duration, plural
from jobwire.pipeline.targets.forecast import Forecast
from jobwire.pipeline.targets.outlook import Outlook

_QUEUES = 15
_ASSUMES = (
    "Rates are those of the last six hours observed. Jobs at a time follow from Little’s law: runs started in a second "
    "of the week’s busiest hour, times the mean time of a run. The slots keep the target’s wait if jobs arrive "
    "independently of each other and run times are spread exponentially. Without a target, they are busy for 80 % of "
    "the time."
)


def forecast(frames: Frames, outlook: Outlook) -> Section | None:
    """Returns the forecast of each queue, or None if there is none."""
    found = [one for one in outlook.forecasts if (one.backlog and one.backlog.ready) or one.slots is not None]
    if not found:
        return None
    found.sort(key=lambda one: (not one.grows, -(one.backlog.ready if one.backlog else 0), one.key))
    rows = [_row(frames, one) for one in found[:_QUEUES]]
    columns = (
        "queue",
        "ready",
        "added per hour",
        "ended per hour",
        "empty in",
        "mean run",
        "jobs at a time",
        "slots needed",
    )
    more = f", {_QUEUES} of {len(found)}" if len(found) > _QUEUES else ""
    grid = Grid(f"At the present rates{more}", columns, rows, frozenset(columns[1:]), "forecast")
    return Section("forecast", "Forecast", _finding(frames, found), _ASSUMES, (), [grid])


def _finding(frames: Frames, found: list[Forecast]) -> str:
    growing = [one for one in found if one.grows]
    if growing:
        first = growing[0]
        rate = max(1, round(first.added_per_hour - first.ended_per_hour))
        pace = f"grows by {plural(rate, 'job')} an hour"
        more = f", as {plural(len(growing) - 1, 'other queue')}" if len(growing) > 1 else ""
        ready = first.backlog.ready if first.backlog else 0
        return f"{_name(frames, first)} has {plural(ready, 'ready job')} and {pace}{more}"
    behind = [one for one in found if one.behind]
    waiting = [one for one in behind if one.empty_in is not None]
    if waiting:
        last = max(waiting, key=lambda one: one.empty_in or timedelta())
        time = duration((last.empty_in or timedelta()) / timedelta(milliseconds=1))
        if len(waiting) == 1:
            return f"{_name(frames, last)} is empty in {time} at the present rates"
        return f"All queues are empty in {time} at the present rates, {_name(frames, last)} last"
    if behind:
        ready = behind[0].backlog.ready if behind[0].backlog else 0
        return f"{_name(frames, behind[0])} has {plural(ready, 'ready job')} and does not get shorter"
    return "No queue is behind"


def _row(frames: Frames, one: Forecast) -> list[str | Cell]:
    ready = one.backlog.ready if one.backlog else 0
    empty: str | Cell = "–"
    if one.empty_in is not None:
        empty = duration(one.empty_in / timedelta(milliseconds=1))
    elif one.grows:
        empty = Cell("grows", "bad steady")
    return [
        _name(frames, one),
        count(ready),
        count(one.added_per_hour),
        count(one.ended_per_hour),
        empty,
        "–" if one.run_ms is None else duration(one.run_ms),
        "–" if one.load is None else f"{one.load:.2g}" if one.load < 10 else count(one.load),
        "–" if one.slots is None else count(one.slots),
    ]


def _name(frames: Frames, one: Forecast) -> str:
    return frames.labels.get((one.key.store, one.key.queue), one.key.queue)
