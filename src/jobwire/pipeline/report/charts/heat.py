"""Heat maps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

import altair as alt

from jobwire.look.palette import MUTED, PAPER
from jobwire.pipeline.report.charts.axes import FRAME, PHONE, ROUND_DURATIONS, Drawing, chart
from jobwire.pipeline.report.frames import Column, Frame
from jobwire.pipeline.report.palette import HEAT


def heat_map(
    frame: Frame,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    bounds: Sequence[float],
    said: Callable[[float], str],
    titles: tuple[str, str],
    width: int,
) -> Drawing:
    """Returns cells of `value` at `row` and `column`, shaded by the bounds between which they lie. The titles are that
    of the columns and that of the values; `said` turns a bound into words. A position without a cell stays empty."""
    words = [said(bound) for bound in bounds]
    shades = [f"under {words[0]}"]
    shades += [f"{low} – {high}" for low, high in pairwise(words)]
    shades.append(f"{words[-1]} or more")
    cells = [
        {"row": row, "column": column, "shade": shades[bisect_right(bounds, value)]}
        for row, column, value in zip(frame["row"], frame["column"], frame["value"], strict=True)
    ]
    paints = [HEAT[round(place * (len(HEAT) - 1) / (len(shades) - 1))] for place in range(len(shades))]
    legend = alt.Legend(
        title=titles[1],
        titleColor=MUTED,
        titleFontSize=11,
        titleFontWeight="normal",
        titleOrient="top" if width == PHONE else "left",
        titlePadding=20,
        offset=14,
        columns=3 if width == PHONE else 0,
    )
    axis = alt.Axis(labelAngle=0, labelOverlap="greedy", labelSeparation=8)
    return (
        chart(cells)
        .mark_rect(stroke=PAPER, strokeWidth=1.5)
        .encode(
            x=alt.X("column:N", scale=alt.Scale(domain=list(columns)), title=titles[0], axis=axis),
            y=alt.Y("row:N", scale=alt.Scale(domain=list(rows)), title=None),
            color=alt.Color("shade:N", scale=alt.Scale(domain=shades, range=paints), legend=legend),
        )
        .properties(width=width, height=22 * len(rows) + FRAME + (40 if width == PHONE else 0))
    )


def duration_bounds(values: Sequence[float] | Column) -> list[float]:
    """Returns up to five round durations (ms) among the values, in about equal factors: waits differ by orders of
    magnitude."""
    inside = [float(bound) for bound in ROUND_DURATIONS if min(values) < bound <= max(values)]
    if len(inside) <= len(HEAT) - 1:
        above = (float(bound) for bound in ROUND_DURATIONS if bound > max(values))
        return inside or [next(above, float(ROUND_DURATIONS[-1]))]
    last = len(HEAT) - 2
    return [inside[round(place * (len(inside) - 1) / last)] for place in range(last + 1)]
