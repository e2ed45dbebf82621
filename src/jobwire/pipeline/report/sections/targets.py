"""The error budgets of queues that have targets."""

from __future__ import annotations

from datetime import timedelta

from jobwire.pipeline.report.frames import Frames
from jobwire.pipeline.report.parts import Cell, Grid, Section
from jobwire.pipeline.report.wording import count, duration, listed, plural, share
from jobwire.pipeline.targets.budget import WAIT, Budget
from jobwire.pipeline.targets.outlook import Outlook

_ALERTS = {"fast": "burns fast", "slow": "burns slowly"}


def targets(frames: Frames, outlook: Outlook) -> Section | None:
    """Returns how much of its budget each queue has spent, or None if no queue has a target."""
    if not outlook.targets.targets:
        return None
    found = sorted(outlook.budgets, key=lambda one: (one.alert is None, one.left))
    if not found:
        return Section("targets", "Targets", "No queue of this report has a target")
    rows = [_row(frames, one) for one in found]
    columns = ("queue", "target", "bad", "of", "budget left", "burn 1 h", "6 h", "3 d", "")
    figures = frozenset(columns[2:8])
    grid = Grid("Error budgets", columns, rows, figures, "target")
    return Section("targets", "Targets", _finding(frames, found), _text(found), (), [grid])


def _finding(frames: Frames, found: list[Budget]) -> str:
    missed = [one for one in found if not one.met]
    burning = [one for one in found if one.alert]
    if burning:
        first = burning[0]
        more = f", and {plural(len(burning) - 1, 'other target')}" if len(burning) > 1 else ""
        return f"{_name(frames, first)} {_ALERTS[first.alert or 'slow']} through its budget for {_kind(first)}{more}"
    if missed:
        names = listed(sorted({_name(frames, one) for one in missed})[:3])
        return f"{plural(len(missed), 'target')} of {len(found)} {'is' if len(missed) == 1 else 'are'} missed: {names}"
    return f"{'The target is' if len(found) == 1 else f'All {len(found)} targets are'} met"


def _text(found: list[Budget]) -> str:
    text = "A burn rate of 1 spends the budget exactly within its window."
    shortest = min(found, key=lambda one: one.observed / one.target.window)
    if shortest.observed < shortest.target.window:
        observed = duration(shortest.observed / timedelta(milliseconds=1))
        window = duration(shortest.target.window / timedelta(milliseconds=1))
        text += f" Of the window of {window}, {observed} were observed."
    return text


def _row(frames: Frames, one: Budget) -> list[str | Cell]:
    left = "–" if not one.cases.all else f"{max(one.left, -9.99):.0%}".replace("%", " %")
    state = (
        Cell(_ALERTS[one.alert], "bad steady")
        if one.alert
        else Cell("met", "good")
        if one.met
        else Cell("missed", "bad")
    )
    limit = (
        f"p95 wait within {duration(one.limit * 1000)}"
        if one.measure == WAIT
        else f"failed within {share(one.limit, 1)}"
    )
    return [
        _name(frames, one),
        Cell(limit, "steady"),
        count(one.cases.bad),
        count(one.cases.all),
        left,
        *(f"{one.burn[name]:.1f}" for name in ("1h", "6h", "3d")),
        state,
    ]


def _name(frames: Frames, one: Budget) -> str:
    return frames.labels.get((one.key.store, one.key.queue), one.key.queue)


def _kind(one: Budget) -> str:
    return "waiting" if one.measure == WAIT else "failures"
