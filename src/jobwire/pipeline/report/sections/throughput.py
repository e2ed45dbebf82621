"""The work done, by time and by queue."""

from __future__ import annotations

from functools import partial

from jobwire.look.palette import OUTCOME
from jobwire.pipeline.report.charts import Drawing, stacked_bars, stacked_over_time
from jobwire.pipeline.report.frames import OUTCOMES, Frame, Frames
from jobwire.pipeline.report.parts import Chart, Section
from jobwire.pipeline.report.period import Period
from jobwire.pipeline.report.wording import count, day, plural, share

_QUEUES_DRAWN = 4
_QUEUES_COMPARED = 12
_BEHIND = 0.02
"""The share of the jobs added that may be unfinished at the period's end without counting as a backlog."""


def throughput(frames: Frames, period: Period) -> Section:
    """Returns jobs that ended, by outcome: over time, or by queue if the period is too short to show a trend."""
    table = frames.throughput
    if not table[["added", *OUTCOMES]].to_numpy().sum():
        return Section("throughput", "Throughput", "No job was added and none ended in this period")
    by_queue = table.groupby("label")[["added", *OUTCOMES, "retried", "stalled"]].sum()
    by_queue["work"] = by_queue[list(OUTCOMES)].sum(axis=1)
    by_queue = by_queue.sort_values(["work", "added"], ascending=False, kind="stable")
    charts = _compared(by_queue) if period.momentary else _courses(table, list(by_queue.index), period)
    return Section("throughput", "Throughput", _finding(table, by_queue, period), _balance(by_queue), charts)


def _finding(table: Frame, by_queue: Frame, period: Period) -> str:
    completed, ended = by_queue["completed"].sum(), by_queue["work"].sum()
    if not ended:
        return f"{plural(by_queue['added'].sum(), 'job')} were added, and none ended"
    first = by_queue.index[0]
    part = f"{first} did {share(by_queue['work'].iloc[0], ended)} of the work" if len(by_queue) > 1 else ""
    done = f"{plural(completed, 'job')} completed"
    if period.momentary:
        rate = completed / max(period.length.total_seconds(), 1)
        pace = f", {count(rate)} a second" if rate >= 1 else ""
        return f"{done}{pace}" + (f"; {part}" if part else "")
    hourly = table.groupby("hour")["completed"].sum()
    peak = hourly.idxmax()
    top = f"the busiest hour, {day(peak)} {peak:%H:%M}, did {count(hourly.max())}"
    return f"{done}; {top}" + (f", and {part}" if part else "")


def _balance(by_queue: Frame) -> str:
    """Returns whether the workers kept up, and what the stores had them do again."""
    growth = by_queue["added"] - by_queue["work"]
    behind = growth[growth > by_queue["added"] * _BEHIND].sort_values(ascending=False)
    if behind.empty:
        text = "Every queue kept up with what was added."
    else:
        text = f"{plural(behind.iloc[0], 'job')} more were added to {behind.index[0]} than completed or failed:"
        text += " they wait, or were cancelled or removed."
        if len(behind) > 1:
            text += f" So it is in {plural(len(behind) - 1, 'other queue')}."
    retried, stalled = by_queue["retried"].sum(), by_queue["stalled"].sum()
    if retried:
        text += f" {plural(retried, 'run')} {'was a retry' if retried == 1 else 'were retries'}."
    if stalled:
        text += f" {plural(stalled, 'run')} stalled: the worker was lost or its lock expired."
    return text


def _compared(by_queue: Frame) -> list[Chart]:
    rows = by_queue.head(_QUEUES_COMPARED).reset_index()
    rows["text"] = [count(value) for value in rows["work"]]
    drawing = partial(stacked_bars, rows, OUTCOME, unit="jobs that ended")
    return [Chart("throughput", "Jobs that ended, by queue and outcome", drawing)]


def _courses(table: Frame, queues: list[str], period: Period) -> list[Chart]:
    charts = [
        Chart(
            "throughput",
            f"All queues: jobs added and ended per {period.grain}",
            partial(_drawn, table, period, whole=True),
        )
    ]
    if len(queues) > 1:
        for number, queue in enumerate(queues[:_QUEUES_DRAWN], 1):
            drawing = partial(_drawn, table[table["label"] == queue], period, whole=False)
            charts.append(Chart(f"throughput-{number}", f"{queue}: jobs ended per {period.grain}", drawing, span=3))
    return charts


def _drawn(table: Frame, period: Period, *, whole: bool, width: int) -> Drawing:
    """Returns the course of all queues, with what was added, or that of one."""
    at = table["hour"].dt.floor("h" if period.grain == "hour" else "D").rename("at")
    course = table.groupby(at)[["added", *OUTCOMES]].sum().reindex(period.buckets(), fill_value=0)
    return stacked_over_time(
        course.rename_axis("at").reset_index(),
        OUTCOME,
        period.step,
        unit=f"jobs per {period.grain}",
        width=width,
        height=250 if whole else 165,
        line="added" if whole else None,
        legend=whole,
    )
