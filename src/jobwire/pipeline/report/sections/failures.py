"""Failures and their causes."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pandas as pd

from jobwire.look.palette import OUTCOME
from jobwire.pipeline.report.charts import HALF, WIDE, stacked_bars, stacked_over_time
from jobwire.pipeline.report.charts.axes import FRAME, ROW
from jobwire.pipeline.report.forgotten import forgotten_runs, queues_that_forget
from jobwire.pipeline.report.frames import Column, Frame, Frames
from jobwire.pipeline.report.palette import CLASSES
from jobwire.pipeline.report.parts import Cell, Chart, Grid, Section
from jobwire.pipeline.report.period import Period
from jobwire.pipeline.report.wording import count, day, distinct, moment, plural, share, shorten

_CLASSES = 8
_ROWS = 10


def failures(frames: Frames, period: Period) -> Section:
    """Returns failed runs by class of error, by day, with a sample of each."""
    table = frames.failures[frames.failures["failures"] > 0]
    missing = _missing(frames)
    if table.empty and missing:
        return Section("failures", "Failures", "No failed run is known", missing)
    if table.empty:
        ended = frames.throughput["completed"].sum()
        return Section(
            "failures", "Failures", "Nothing failed" if ended else "Nothing failed, and nothing was completed either"
        )
    totals = table.groupby("error_class")["failures"].sum().sort_values(ascending=False, kind="stable")
    texts = distinct([shorten(str(name) or "(no message)", 26) for name in totals.index])
    names = dict(zip(totals.index, texts, strict=True))
    by_day = period.length >= timedelta(days=3)
    charts = [_by_class(totals, names, HALF if by_day else WIDE)]
    if by_day:
        charts.append(_by_day(table, totals, names, period))
    text = " ".join(filter(None, [_worst_day(table) if by_day else "", missing]))
    finding = _finding(frames, table, names)
    return Section("failures", "Failures", finding, text, charts, [_samples(table, names)])


def _finding(frames: Frames, table: Frame, names: dict[str, str]) -> str:
    """Returns the queue with the greatest share of failed jobs, among those with enough jobs."""
    ended = frames.throughput.groupby("label")[["completed", "failed"]].sum()
    ended["all"] = ended["completed"] + ended["failed"]
    ended["share"] = ended["failed"] / ended["all"].where(ended["all"] > 0)
    weighty = ended[ended["failed"] >= 0.05 * ended["failed"].sum()]
    if not ended["failed"].sum():
        first = table.groupby("error_class")["failures"].sum().idxmax()
        return (
            f"{plural(table['failures'].sum(), 'run')} failed, mainly with {names[first]}, but no job failed for good"
        )
    queue = weighty["share"].idxmax()
    row = ended.loc[queue]
    own = table[table["label"] == queue].groupby("error_class")["failures"].sum()
    why = ""
    if not own.empty:
        main = own.idxmax()
        why = f", {'all' if len(own) == 1 else 'mainly'} {names[main]}"
    part = f"{share(row['failed'], row['all'])} of {plural(row['all'], 'job')}"
    if len(ended) == 1:
        return f"{part} failed for good{why}"
    return f"{queue} failed most: {part}{why}"


def _missing(frames: Frames) -> str:
    """Returns a sentence about failed runs that are not among the figures. A run that was followed by another has
    failed."""
    forgotten = forgotten_runs(frames)
    if not forgotten:
        return ""
    more = f"{plural(forgotten, 'more failed run')} of {queues_that_forget(frames)}"
    verb = "is" if forgotten == 1 else "are"
    return f"Over the whole history, {more} {verb} not among these: the store kept only the last run of each job."


def _worst_day(table: Frame) -> str:
    days = table.groupby("day")["failures"].sum()
    worst = days.idxmax()
    usual = days.median()
    if len(days) < 3 or days.max() < 1.5 * usual:
        return f"Failures came evenly, about {plural(round(usual), 'failed run')} a day."
    times = f"{days.max() / usual:.1f} times the usual {count(usual)}"
    return f"{day(worst)} was the worst day: {plural(days.max(), 'failed run')}, {times}."


def _by_class(totals: Column, names: dict[str, str], width: int) -> Chart:
    rows = pd.DataFrame({"label": [names[name] for name in totals.index], "failures": totals.to_numpy()})
    if len(rows) > _CLASSES:
        rest = rows.iloc[_CLASSES - 1 :]
        others = {"label": f"{len(rest)} other classes", "failures": rest["failures"].sum()}
        rows = pd.concat([rows.iloc[: _CLASSES - 1], pd.DataFrame([others])], ignore_index=True)
    rows["text"] = [f"{count(value)} · {share(value, totals.sum())}" for value in rows["failures"]]
    drawing = partial(stacked_bars, rows, {"failures": OUTCOME["failed"]}, unit="failed runs")
    return Chart("failures", "Failed runs by class of error", drawing, span=3 if width == HALF else 6)


def _by_day(table: Frame, totals: Column, names: dict[str, str], period: Period) -> Chart:
    top = list(totals.index[: len(CLASSES) - 1])
    parts = {names[name]: colour for name, colour in zip(top, CLASSES, strict=False)}
    if len(totals) > len(top):
        parts["others"] = CLASSES[-1]
    part = [names[name] if name in top else "others" for name in table["error_class"]]
    course = table.assign(part=part).pivot_table(index="day", columns="part", values="failures", aggfunc="sum")
    days = period.days()
    course = course.reindex(index=days, columns=list(parts)).fillna(0).rename_axis("at").reset_index()
    drawing = partial(
        stacked_over_time,
        course,
        parts,
        timedelta(days=1),
        unit="failed runs per day",
        height=ROW * min(len(totals), _CLASSES) + FRAME,
    )
    return Chart("failures-daily", "Failed runs per day", drawing, span=3)


def _samples(table: Frame, names: dict[str, str]) -> Grid:
    groups = table.groupby(["error_class", "label"], sort=False).agg(
        failures=("failures", "sum"),
        jobs=("jobs", "sum"),
        sample_error=("sample_error", "last"),
        last_at=("last_at", "max"),
    )
    groups = groups.sort_values("failures", ascending=False, kind="stable").head(_ROWS).reset_index()
    rows = [
        [
            names[row["error_class"]],
            row["label"],
            count(row["failures"]),
            count(row["jobs"]),
            Cell("–" if pd.isna(row["last_at"]) else moment(row["last_at"]), "steady"),
            Cell(shorten(row["sample_error"], 90) if row["sample_error"] else "", "quiet"),
        ]
        for row in groups.to_dict("records")
    ]
    columns = ("class", "queue", "failed runs", "jobs", "last (UTC)", "sample")
    return Grid("The most frequent failures", columns, rows, frozenset({"failed runs", "jobs"}), "failure")
