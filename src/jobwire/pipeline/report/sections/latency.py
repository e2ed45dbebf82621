"""The times for which jobs waited and ran."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from jobwire.pipeline.report.charts import (
    duration_bounds,
    heat_map,
    percentile_ranges,
    percentiles_over_time,
)
from jobwire.pipeline.report.frames import Column, Frame, Frames
from jobwire.pipeline.report.parts import Chart, Section
from jobwire.pipeline.report.percentiles import LEVELS, overall, pooled
from jobwire.pipeline.report.period import Period
from jobwire.pipeline.report.wording import day, duration

_QUEUES = 12
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TITLES = {"wait": "Waiting: from due to started", "run": "Running: from started to ended"}


def latency(frames: Frames, period: Period) -> Section:
    """Returns percentiles of waiting and running, over time or by queue, and where in the week waits are long."""
    table = frames.latency
    waits, runs = overall(table, "wait"), overall(table, "run")
    if waits is None and runs is None:
        return Section("latency", "Latency", "No run has a known wait or duration")
    if period.momentary:
        charts = [_by_queue(table, kind) for kind, known in (("wait", waits), ("run", runs)) if known is not None]
    else:
        charts = [_course(table, kind, period) for kind, known in (("wait", waits), ("run", runs)) if known is not None]
        if waits is not None:
            charts.append(_heat(table, period))
    text = "p50 is the middle: half of the runs took less. 95 of 100 took less than p95, 99 of 100 less than p99."
    if waits is not None and not period.momentary:
        text = f"{_peak(table, waits)} {text}"
    return Section("latency", "Latency", _finding(table, waits, runs), text, charts)


def _finding(table: Frame, waits: Column | None, runs: Column | None) -> str:
    started = None if waits is None else f"started within {duration(waits['p95'])}"
    ran = None if runs is None else f"ran for less than {duration(runs['p95'])}"
    finding = f"95 % of jobs {' and '.join(part for part in (started, ran) if part)}"
    if waits is None:
        return finding
    queues = pooled(table, ["label"], "wait")
    worst = queues.loc[queues["p95"].idxmax()]
    if len(queues) > 1 and worst["p95"] > 1.2 * waits["p95"]:
        finding += f"; {worst['label']} waited longest, p95 {duration(worst['p95'])}"
    return finding


def _peak(table: Frame, waits: Column) -> str:
    hours = pooled(table, ["hour"], "wait")
    worst = hours.loc[hours["p95"].idxmax()]
    if worst["p95"] < 2 * waits["p95"]:
        return "No hour stood out."
    return (
        f"The worst hour was {day(worst['hour'])} {worst['hour']:%H:%M}, with a p95 wait of {duration(worst['p95'])}."
    )


def _course(table: Frame, kind: str, period: Period) -> Chart:
    at = table["hour"].dt.floor("h" if period.grain == "hour" else "D")
    figures = pooled(table.assign(at=at), ["at"], kind).set_index("at")[list(LEVELS)]
    course = figures.reindex(period.buckets()).rename_axis("at").reset_index()
    unit = "waiting time" if kind == "wait" else "running time"
    drawing = partial(percentiles_over_time, course, period.step, unit=unit)
    return Chart(f"latency-{kind}", _TITLES[kind], drawing, span=3)


def _by_queue(table: Frame, kind: str) -> Chart:
    queues = pooled(table, ["label"], kind).sort_values("p95", ascending=False, kind="stable").head(_QUEUES)
    queues["text"] = [f"p95 {duration(value)}" for value in queues["p95"]]
    unit = "waiting time" if kind == "wait" else "running time"
    return Chart(f"latency-{kind}", _TITLES[kind], partial(percentile_ranges, queues, unit=unit), span=3)


def _heat(table: Frame, period: Period) -> Chart:
    """Returns waits by hour of day and day; by weekday where days are too many, by queue where they are too few."""
    hour = table["hour"]
    if period.length < timedelta(days=2):
        columns = [f"{at:%H}" for at in period.buckets()]
        cells = table.assign(row=table["label"], column=hour.dt.strftime("%H"))
        rows = list(pooled(cells, ["row"], "wait").sort_values("p95", ascending=False)["row"].head(_QUEUES))
        caption, across = "p95 wait by queue and hour", "hour (UTC)"
        if len(set(columns)) < len(columns):
            columns = [f"{at:%H} · {at.day}" for at in period.buckets()]
            cells["column"] = [f"{at:%H} · {at.day}" for at in hour]
            across = "hour · day of the month (UTC)"
    else:
        columns = [f"{number:02}" for number in range(24)]
        across = "hour of day (UTC)"
        if period.length <= timedelta(days=31):
            cells = table.assign(row=[day(at) for at in hour], column=hour.dt.strftime("%H"))
            days = period.days()
            rows, caption = [day(at) for at in days], "p95 wait by day and hour of day, all queues"
        else:
            cells = table.assign(row=[_WEEKDAYS[at.weekday()] for at in hour], column=hour.dt.strftime("%H"))
            rows, caption = list(_WEEKDAYS), "p95 wait by weekday and hour of day, all queues"
    figures = pooled(cells[cells["row"].isin(rows)], ["row", "column"], "wait").rename(columns={"p95": "value"})
    bounds = duration_bounds(figures["value"])
    titles = (across, "p95 wait")
    drawing = partial(heat_map, figures, rows=rows, columns=columns, bounds=bounds, said=duration, titles=titles)
    return Chart("latency-heat", caption, drawing)
