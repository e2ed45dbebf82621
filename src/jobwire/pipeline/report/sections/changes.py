"""Differences between this week and the last."""

from __future__ import annotations

from jobwire.pipeline.report.frames import Frames
from jobwire.pipeline.report.parts import Cell, Grid, Section
from jobwire.pipeline.report.wording import count, duration, plural, share
from jobwire.pipeline.targets.change import Change
from jobwire.pipeline.targets.outlook import Outlook

_ROWS = 15
_WORSE = {"jobs": False, "failure rate": True, "wait p95": True, "run p95": True}
"""Measures that are worse when they are higher."""
_RULE = (
    "Each of the last seven days is compared with the same day a week before. It is a change if all days agree, if it "
    "is at least a quarter, and if it is three times as large as the days differ among themselves."
)


def changes(frames: Frames, outlook: Outlook) -> Section | None:
    """Returns what is different from last week, or None if the lake has less than two weeks."""
    if not outlook.compared:
        return None
    found = list(outlook.changes)
    if not found:
        return Section("changes", "Changes", "Nothing is different from last week", _RULE)
    rows = [_row(frames, one) for one in found[:_ROWS]]
    more = f", the largest {_ROWS} of {len(found)}" if len(found) > _ROWS else ""
    columns = ("queue", "measure", "last week", "this week", "change")
    grid = Grid(f"Median of the days{more}", columns, rows, frozenset(columns[2:]), "change")
    first = found[0]
    others = f"; {plural(len(found) - 1, 'more change')}" if len(found) > 1 else ""
    return Section("changes", "Changes", f"{_name(frames, first)}: {_finding(first)}{others}", _RULE, (), [grid])


def _finding(one: Change) -> str:
    if not one.now or not one.before:
        return f"no job ended {'last' if one.now else 'this'} week"
    what = {"jobs": "jobs that ended"}.get(one.measure, one.measure)
    return f"{what} {_times(one)} last week’s"


def _row(frames: Frames, one: Change) -> list[str | Cell]:
    tone = "" if not _WORSE[one.measure] else "bad" if one.factor > 1 else "good"
    values = (one.before, one.now)
    return [_name(frames, one), one.measure, *(_said(one.measure, value) for value in values), Cell(_times(one), tone)]


def _said(measure: str, value: float) -> str:
    if measure == "failure rate":
        return share(value, 1)
    return count(value) if measure == "jobs" else duration(value)


def _times(one: Change) -> str:
    if not one.before:
        return "from none"
    return f"{one.factor:.1f} times" if one.factor >= 1.25 else f"{one.factor:.0%} of".replace("%", " %")


def _name(frames: Frames, one: Change) -> str:
    return frames.labels.get((one.key.store, one.key.queue), one.key.queue)
