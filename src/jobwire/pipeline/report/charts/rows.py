"""Charts with a row for each queue, name, class or worker."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import altair as alt

from jobwire.look.palette import GRID
from jobwire.pipeline.report.charts.axes import (
    COUNT,
    DURATION,
    FRAME,
    HALF,
    HIGH_ROW,
    NUMBER,
    PERCENT,
    PHONE,
    ROW,
    WIDE,
    Drawing,
    chart,
    colours,
    duration_places,
    room,
    row_axis,
    texts,
    texts_over,
)
from jobwire.pipeline.report.frames import Frame
from jobwire.pipeline.report.palette import LEVEL


def stacked_bars(frame: Frame, parts: Mapping[str, str], *, unit: str, width: int) -> Drawing:
    """Returns one bar for each `label`, in the frame's order, of the columns in `parts`, with `text` at its end."""
    rows: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    for record in frame.to_dict("records"):
        base = 0.0
        for part in parts:
            if record[part]:
                rows.append({"label": record["label"], "from": base, "to": base + record[part], "part": part})
                base += record[part]
        ends.append({"label": record["label"], "to": base, "text": record["text"]})
    scale = room({end["label"]: (end["to"], end["text"]) for end in ends}, width)
    y = row_axis(list(frame["label"]), width)
    marks = (
        chart(rows)
        .mark_bar(size=15)
        .encode(
            y=y,
            x=alt.X("from:Q", title=unit, scale=scale, axis=_counting(width)),
            x2="to:Q",
            color=colours(parts) if len(parts) > 1 else alt.value(next(iter(parts.values()))),
        )
    )
    height = ROW * len(frame) + (FRAME if len(parts) > 1 else FRAME - 36)
    return alt.layer(marks, texts(ends, y, "to")).properties(width=width, height=height)


def bars(frame: Frame, colour: str, *, percent: bool, unit: str, width: int) -> Drawing:
    """Returns one bar for each `label` of its `value`, with `text` at its end; percentages have a scale up to 100."""
    rows = frame[["label", "value", "text"]].to_dict("records")
    ends = {row["label"]: (100 if percent else row["value"], row["text"]) for row in rows}
    parts = [0, 50, 100] if width == PHONE else [0, 25, 50, 75, 100]
    places: dict[str, Any] = {"values": parts} if percent else {"tickCount": 3 if width == PHONE else 5}
    axis = alt.Axis(labelExpr=PERCENT if percent else NUMBER, grid=True, **places)
    y = row_axis(list(frame["label"]), width)
    x = alt.X("value:Q", title=unit, axis=axis, scale=room(ends, width))
    marks = chart(rows).mark_bar(size=15, color=colour).encode(y=y, x=x)
    height = ROW * len(frame) + FRAME - 36
    return alt.layer(marks, texts(rows, y, "value")).properties(width=width, height=height)


def percentile_ranges(frame: Frame, *, unit: str, width: int) -> Drawing:
    """Returns for each `label` a line from p50 to p99 (ms) with a dot at each percentile, `text` over that of p95."""
    clamped = frame.assign(**{level: frame[level].clip(lower=1) for level in LEVEL})
    spans = clamped[["label", "text", *LEVEL]].to_dict("records")
    dots: list[dict[str, Any]] = [
        {"label": row["label"], "part": level, "ms": row[level]} for row in spans for level in LEVEL
    ]
    low, high = min(row["p50"] for row in spans) / 1.4, max(row["p99"] for row in spans) * 1.4
    scale = alt.Scale(type="log", nice=False, domain=[low, high])
    places = duration_places([dot["ms"] for dot in dots], 8 if width == WIDE else 5 if width == HALF else 3)
    y = row_axis(list(frame["label"]), width)
    x = alt.X("p50:Q", title=unit, scale=scale, axis=alt.Axis(values=places, labelExpr=DURATION, grid=True))
    lines = chart(spans).mark_rule(strokeWidth=3, color=GRID).encode(y=y, x=x, x2="p99:Q")
    points = chart(dots).mark_circle(size=80, opacity=1).encode(y=y, x="ms:Q", color=colours(LEVEL, symbol="circle"))
    if width == PHONE:
        spans = [{**row, "text": row["text"].partition(" · ")[0]} for row in spans]
    names = texts_over(spans, y, "p95", middle=math.sqrt(low * high))
    height = HIGH_ROW * len(frame) + FRAME
    return alt.layer(lines, points, *names).properties(width=width, height=height)


def _counting(width: int) -> alt.Axis:
    return alt.Axis(labelExpr=COUNT, tickCount=6 if width == WIDE else 4, tickMinStep=1, grid=True)
