"""Charts over time. Time is drawn as milliseconds and labelled in UTC, whatever zone the renderer has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import altair as alt
import pandas as pd

from jobwire.look.palette import INK, PAPER
from jobwire.pipeline.report.charts.axes import (
    ABOVE,
    COUNT,
    DURATION,
    WIDE,
    Drawing,
    above,
    chart,
    colours,
    duration_places,
)
from jobwire.pipeline.report.frames import Column, Frame
from jobwire.pipeline.report.palette import LEVEL

_HOUR = 3_600_000
_DAY = 24 * _HOUR


def stacked_over_time(
    frame: Frame,
    parts: Mapping[str, str],
    step: timedelta,
    *,
    unit: str,
    width: int,
    height: int = 240,
    line: str | None = None,
    legend: bool = True,
) -> Drawing:
    """Returns bars from `at` on, as wide as the step, of the columns that `parts` names with their colours, and a line
    of the column `line` over them."""
    length = step / timedelta(milliseconds=1)
    drawn = length * (0.88 if len(frame) <= 40 else 1)
    rows: list[dict[str, Any]] = []
    for record in frame.to_dict("records"):
        start, base = _epoch(record["at"]), 0.0
        for part in parts:
            if record[part]:
                piece = {"start": start, "end": start + drawn, "from": base, "to": base + record[part], "part": part}
                rows.append(piece)
                base += record[part]
    all_parts = {**parts, line: INK} if line else parts
    marks = (
        chart(rows)
        .mark_rect(stroke=PAPER, strokeWidth=0.5 if len(frame) <= 250 else 0)
        .encode(
            x=_time_axis(frame["at"], length, width, "start"),
            x2="end:Q",
            y=alt.Y("from:Q", title=unit, axis=above(COUNT, tickCount=height // 55, tickMinStep=1)),
            y2="to:Q",
            color=colours(all_parts, columns=_legend_columns(parts, width), offset=ABOVE, legend=legend),
        )
    )
    if line is None:
        return marks.properties(width=width, height=height)
    course = [
        {"middle": _epoch(record["at"]) + length / 2, "to": record[line], "part": line}
        for record in frame.to_dict("records")
    ]
    over = chart(course).mark_line(strokeWidth=1, interpolate="step").encode(x="middle:Q", y="to:Q", color="part:N")
    return alt.layer(marks, over).properties(width=width, height=height)


def percentiles_over_time(frame: Frame, step: timedelta, *, unit: str, width: int) -> Drawing:
    """Returns lines of the columns `p50, p95, p99` (ms) at `at`; hours without runs (null) break the line."""
    length = step / timedelta(milliseconds=1)
    rows: list[dict[str, Any]] = [
        {
            "middle": _epoch(record["at"]) + length / 2,
            "part": level,
            "ms": None if pd.isna(record[level]) else max(record[level], 1),
        }
        for record in frame.to_dict("records")
        for level in LEVEL
    ]
    known = [row["ms"] for row in rows if row["ms"] is not None]
    axis = above(DURATION, values=duration_places(known, 6), grid=True)
    scale = alt.Scale(type="log", nice=False, domain=[min(known) / 1.3, max(known) * 1.3])
    return (
        chart(rows)
        .mark_line(strokeWidth=1.6, point=alt.OverlayMarkDef(size=14) if len(frame) <= 72 else False)
        .encode(
            x=_time_axis(frame["at"], length, width, "middle"),
            y=alt.Y("ms:Q", title=unit, scale=scale, axis=axis),
            color=colours(LEVEL, symbol="stroke", offset=ABOVE),
        )
        .properties(width=width, height=250)
    )


def _legend_columns(parts: Mapping[str, str], width: int) -> int:
    """Returns how many names fit beside each other; 0 puts them all in one line."""
    fitting = width // (7 * max(len(part) for part in parts) + 34)
    return 0 if fitting >= len(parts) + 1 else max(1, fitting)


def _epoch(at: pd.Timestamp) -> float:
    return at.timestamp() * 1000


def _time_axis(starts: Sequence[pd.Timestamp] | Column, length: float, width: int, field: str) -> alt.X:
    first, last = _epoch(min(starts)), _epoch(max(starts)) + length
    span, most = last - first, max(2, width // 110)
    if span <= 2.5 * _DAY:
        shown, gap = "%H:%M", _HOUR * next((n for n in (1, 2, 3, 4, 6, 12) if span / _HOUR / n <= most), 24)
    else:
        shown = "%a %-d %b" if width == WIDE else "%-d %b"
        gap = _DAY * next((n for n in (1, 2, 3, 7, 14, 30, 60, 90) if span / _DAY / n <= most), 180)
    places = [first // gap * gap + gap * number for number in range(int(span // gap) + 2)]
    return alt.X(
        f"{field}:Q",
        title="time (UTC)",
        scale=alt.Scale(domain=[first, last], nice=False, zero=False),
        axis=alt.Axis(
            values=[place for place in places if first <= place < last],
            labelExpr=f"utcFormat(datum.value, '{shown}')",
            labelFlush=False,
            labelAlign="left",
            ticks=True,
            tickColor=INK,
            tickOpacity=0.3,
        ),
    )
