"""The kinds of job that run longest."""

from __future__ import annotations

from functools import partial

from jobwire.pipeline.report.charts import percentile_ranges
from jobwire.pipeline.report.frames import Frame, Frames
from jobwire.pipeline.report.parts import Chart, Section
from jobwire.pipeline.report.percentiles import pooled
from jobwire.pipeline.report.period import Period
from jobwire.pipeline.report.wording import distinct, duration, plural, share, shorten

_NAMES = 10


def names(frames: Frames, period: Period) -> Section:
    """Returns job names by p95 of their run times."""
    figures = pooled(frames.latency, ["store", "queue", "label", "name"], "run")
    if figures.empty:
        return Section("names", "Slowest jobs", "No run has a known duration")
    figures["time"] = figures["p50"] * figures["runs"]
    total = figures["time"].sum()
    figures = figures.sort_values("p95", ascending=False, kind="stable").reset_index(drop=True)
    figures["title"] = distinct(
        [_title(str(row["name"]), str(row["label"]), str(row["queue"])) for _, row in figures.iterrows()]
    )
    return Section("names", "Slowest jobs", _finding(figures), _cost(figures, total), [_chart(figures)])


def _title(name: str, label: str, queue: str) -> str:
    """Returns the name, with its queue where the two differ: in most protocols a queue holds one kind of job of its
    name."""
    return label if name in ("", queue) else f"{shorten(name, 26)} · {shorten(label, 20)}"


def _finding(figures: Frame) -> str:
    slowest = figures.iloc[0]
    long = duration(slowest["p95"])
    many = f"5 % of its runs take more than {long}" if slowest["runs"] >= 100 else f"p95 {long}"
    finding = f"{slowest['title']} runs longest: {many}"
    if len(figures) > 1 and slowest["p95"] > 1.5 * figures["p95"].iloc[1]:
        times = slowest["p95"] / max(figures["p95"].iloc[1], 1)
        finding += f", {times:.0f} times as much as the next" if times >= 2 else ""
    return finding


def _cost(figures: Frame, total: float) -> str:
    if not total:
        return ""
    dearest = figures.loc[figures["time"].idxmax()]
    return (
        f"{dearest['title']} takes most of the workers’ time: about {share(dearest['time'], total)} of it, "
        f"in {plural(dearest['runs'], 'run')}."
    )


def _chart(figures: Frame) -> Chart:
    rows = figures.head(_NAMES).drop(columns="label").rename(columns={"title": "label"})
    rows["text"] = [
        f"p95 {duration(p95)} · {plural(n, 'run')}" for p95, n in zip(rows["p95"], rows["runs"], strict=True)
    ]
    caption = "Running time by job name" + (
        f", the slowest {_NAMES} of {len(figures)}" if len(figures) > _NAMES else ""
    )
    return Chart("names", caption, partial(percentile_ranges, rows, unit="running time"))
