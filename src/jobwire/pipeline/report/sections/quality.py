"""Shows whether the figures can be trusted."""

from __future__ import annotations

import pandas as pd

from jobwire.pipeline.report.forgotten import forgotten_runs, queues_that_forget
from jobwire.pipeline.report.frames import Frame, Frames
from jobwire.pipeline.report.parts import Cell, Grid, Section
from jobwire.pipeline.report.period import Period
from jobwire.pipeline.report.wording import count, listed, plural, shorten

_GAPS = 10
_NAMED = 3


def quality(frames: Frames, period: Period) -> Section:
    """Returns checks over all queues, those that need a look first, and the ranges of events that a store dropped
    before they were read."""
    checks, gaps = frames.quality, frames.gaps
    if checks.empty and gaps.empty:
        return Section("quality", "Data quality", "No check of the data was made in this period")
    checks = checks.assign(
        bad=~checks["ok"].map(lambda ok: ok is not None and bool(ok) and not pd.isna(ok)).astype(bool)
    )
    bad = list(dict.fromkeys(checks.loc[checks["bad"], "check_name"]))
    grids = [_checks(checks, bad)] if len(checks) else []
    if len(gaps):
        grids.append(_gaps(gaps))
    finding = f"{_verdict(checks, bad)}{_missed(gaps)}"
    return Section("quality", "Data quality", finding, _consequence(frames), grids=grids)


def _verdict(checks: Frame, bad: list[str]) -> str:
    number = checks["check_name"].nunique()
    if not number:
        return "No check was made"
    if not bad:
        return "The one check passed" if number == 1 else f"All {number} checks passed"
    named = listed([shorten(name, 40) for name in bad[:_NAMED]] + (["others"] if len(bad) > _NAMED else []))
    return f"{len(bad)} of {plural(number, 'check')} need{'s' if len(bad) == 1 else ''} a look: {named}"


def _missed(gaps: Frame) -> str:
    if gaps.empty:
        return ""
    lost = gaps["lost"].sum()
    least = "at least " if gaps["lost"].isna().any() else ""
    return f"; {least + plural(lost, 'event') if lost else 'some events'} missed"


def _consequence(frames: Frames) -> str:
    gaps, forgotten = frames.gaps, forgotten_runs(frames)
    if gaps.empty and not forgotten:
        return "No event was missed: the stores still had all of them when they were read."
    sentences: list[str] = []
    if len(gaps):
        queues = sorted(set(gaps["label"]))
        named = listed(queues) if len(queues) <= _NAMED else plural(len(queues), "queue")
        sentences.append(f"A store had trimmed events before they were read, so figures of {named} are too low.")
    if forgotten:
        sentences.append(
            f"{plural(forgotten, 'run')} of {queues_that_forget(frames)} had been replaced by a later run of the same "
            "job before they were read."
        )
    more = ", or let workers remember attempts" if forgotten else ""
    return " ".join([*sentences, f"Ingest more often{more}."])


def _checks(checks: Frame, bad: list[str]) -> Grid:
    rows: list[list[str | Cell]] = []
    passed = [name for name in dict.fromkeys(checks["check_name"]) if name not in bad]
    for name in [*bad, *passed]:
        own = checks[checks["check_name"] == name]
        worst = own[own["bad"]].sort_values("value", ascending=False, kind="stable")
        where = [
            f"{label or 'all'} {_value(value)}" for label, value in zip(worst["label"], worst["value"], strict=True)
        ]
        more = [f"{len(where) - _NAMED} more"] if len(where) > _NAMED else []
        note = own["note"].iloc[0]
        rows.append(
            [
                Cell("look", "bad") if name in bad else Cell("ok", "good"),
                shorten(name, 60),
                _value(own["value"].sum(min_count=1)),
                ", ".join([*where[:_NAMED], *more]),
                Cell(shorten(note, 110) if note else "", "quiet"),
            ]
        )
    return Grid("Checks", ("", "check", "in all", "where to look", "what it counts"), rows, frozenset({"in all"}))


def _gaps(gaps: Frame) -> Grid:
    ordered = gaps.sort_values("lost", ascending=False, kind="stable")
    rows = [
        [
            row["label"],
            shorten(row["after"]) if row["after"] else "the beginning",
            shorten(row["before"]) if row["before"] else "–",
            "unknown" if pd.isna(row["lost"]) else count(row["lost"]),
        ]
        for row in ordered.head(_GAPS).to_dict("records")
    ]
    caption = "Gaps in the events" + (f", the largest {_GAPS} of {len(gaps)}" if len(gaps) > _GAPS else "")
    return Grid(caption, ("queue", "after", "before", "events lost"), rows, frozenset({"events lost"}))


def _value(value: float) -> str:
    return "–" if pd.isna(value) else count(value)
