"""The share of time in which workers were busy.

A worker's load is the time of its runs by the time that passed, so a worker that runs four jobs at once all the time
has a load of 4. As long as no load exceeds 1 it is shown in per cent, else as jobs at a time.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pandas as pd

from jobwire.look.palette import OUTCOME
from jobwire.pipeline.report.charts import bars, heat_map
from jobwire.pipeline.report.frames import Frame, Frames
from jobwire.pipeline.report.parts import Chart, Section
from jobwire.pipeline.report.period import Period
from jobwire.pipeline.report.wording import distinct, duration, plural, shorten

_WORKERS = 15
_SINGLE = 1.05  # a run clipped to an hour by clocks of two machines may overlap its successor a little


def workers(frames: Frames, period: Period) -> Section:
    """Returns load by worker: over time, or in all if the period is short."""
    table = frames.workers[frames.workers["worker"] != ""]
    unknown = frames.workers.loc[frames.workers["worker"] == "", "runs"].sum()
    if table.empty:
        return Section("workers", "Workers", "The stores name no worker for the runs of this period")
    hours = _loads(table, period)
    totals = hours.groupby("worker")[["runs", "busy_ms", "present_ms"]].sum()
    totals["load"] = totals["busy_ms"] / totals["present_ms"]
    totals = totals.sort_values("load", ascending=False, kind="stable")
    totals["label"] = distinct([shorten(str(name), 30) for name in totals.index])
    single = bool(hours["load"].max() <= _SINGLE)
    text = _text(hours, totals, single) + (
        f" Of {plural(unknown, 'more run')}, the stores do not name the worker." if unknown else ""
    )
    charts = [_by_worker(totals, single)] if period.momentary else [_course(hours, totals, single)]
    return Section("workers", "Workers", _finding(totals, single), text, charts)


def _loads(table: Frame, period: Period) -> Frame:
    """Returns runs, busy time and load of each worker in each hour, all its queues together. An hour that the period
    covers in part counts with that part."""
    hours = table.groupby(["worker", "hour"], as_index=False)[["runs", "busy_ms"]].sum()
    begin = hours["hour"].clip(lower=pd.Timestamp(period.start))
    end = (hours["hour"] + timedelta(hours=1)).clip(upper=pd.Timestamp(period.end))
    hours["present_ms"] = ((end - begin) / timedelta(milliseconds=1)).clip(lower=1)
    hours["load"] = hours["busy_ms"] / hours["present_ms"]
    return hours


def _said(load: float, single: bool) -> str:
    return f"{min(load, 1) * 100:.0f} %" if single else f"{load:.1f} jobs at a time"


def _finding(totals: Frame, single: bool) -> str:
    load = totals["busy_ms"].sum() / totals["present_ms"].sum()
    said = f"busy {_said(load, single)} of the time" if single else f"each running {_said(load, single)}"
    if len(totals) == 1:
        return f"{totals['label'].iloc[0]} did all the work, {said.replace('each ', '')}"
    finding = f"{plural(len(totals), 'worker')}, {said} on average"
    top, low = totals.iloc[0], totals.iloc[-1]
    if top["load"] > 2 * max(low["load"], 0.001):
        finding += f"; {top['label']} had most to do ({_said(top['load'], single)}), {low['label']} least"
        return f"{finding} ({_said(low['load'], single)})"
    return f"{finding}, evenly spread"


def _text(hours: Frame, totals: Frame, single: bool) -> str:
    text = f"Together they spent {duration(totals['busy_ms'].sum())} on {plural(totals['runs'].sum(), 'run')}."
    full = hours[hours["load"] >= 0.9]
    if single and len(full):
        who = full["worker"].nunique()
        text += f" {plural(who, 'worker')} had {plural(len(full), 'hour')} without room (90 % or more)."
    return text


def _by_worker(totals: Frame, single: bool) -> Chart:
    rows = totals.head(_WORKERS).copy()
    rows["value"] = rows["load"] * (100 if single else 1)
    texts = zip(rows["load"], rows["runs"], strict=True)
    rows["text"] = [f"{_said(load, single)} · {plural(runs, 'run')}" for load, runs in texts]
    unit = "time spent on runs" if single else "jobs at a time, on average"
    drawing = partial(bars, rows, OUTCOME["completed"], percent=single, unit=unit)
    return Chart("workers", _caption("Load by worker", totals), drawing)


def _course(hours: Frame, totals: Frame, single: bool) -> Chart:
    """Returns load by worker and hour of day, whatever the length of the period."""
    rows = totals["label"].head(_WORKERS)
    seen = hours[hours["worker"].isin(rows.index)]
    cells = seen.assign(column=seen["hour"].dt.strftime("%H")).groupby(["worker", "column"], as_index=False)
    cells = cells[["busy_ms", "present_ms"]].sum()
    cells["value"] = cells["busy_ms"] / cells["present_ms"] * (100 if single else 1)
    cells["row"] = cells["worker"].map(rows)
    top = float(cells["value"].max())
    bounds = [10.0, 25.0, 50.0, 75.0, 90.0] if single else [top * part / 6 for part in range(1, 6)]
    drawing = partial(
        heat_map,
        cells,
        rows=list(rows),
        columns=[f"{number:02}" for number in range(24)],
        bounds=bounds,
        said=lambda bound: f"{bound:.0f} %" if single else f"{bound:.1f}",
        titles=("hour of day (UTC)", "time spent on runs" if single else "jobs at a time"),
    )
    return Chart("workers", _caption("Load by worker and hour of day", totals), drawing)


def _caption(what: str, totals: Frame) -> str:
    return what + (f", the busiest {_WORKERS} of {len(totals)}" if len(totals) > _WORKERS else "")
