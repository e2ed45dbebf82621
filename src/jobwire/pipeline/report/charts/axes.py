"""Sizes, scales, axes and legends that the charts share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt

from jobwire.look.palette import INK

Drawing: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart

WIDE, HALF, PHONE = 1000, 484, 350
"""Widths in pixels of drawings that take the page's whole width, half of it, and the screen of a phone."""
ROW, HIGH_ROW, FRAME = 28, 40, 72
"""Height of a row, of one with a text over its dots, and of axis, title and legend around all rows."""

COUNT = "datum.value == 0 ? '0' : format(datum.value, '~s')"
PERCENT = "format(datum.value, '~g') + ' %'"
NUMBER = "format(datum.value, '.2~f')"
DURATION = (
    "datum.value < 1000 ? format(datum.value, '~g') + ' ms'"
    " : datum.value < 60000 ? format(datum.value / 1000, '~g') + ' s'"
    " : datum.value < 3600000 ? format(datum.value / 60000, '~g') + ' min'"
    " : format(datum.value / 3600000, '~g') + ' h'"
)

ROUND_DURATIONS = (
    *(unit * size for unit in (1, 10, 100, 1_000) for size in (1, 2, 5)),
    *(10_000, 20_000, 30_000),
    *(60_000 * size for size in (1, 2, 5, 10, 20, 30)),
    *(3_600_000 * size for size in (1, 2, 5, 12, 24, 48, 120, 240, 480, 1_000, 2_000)),
)
"""In ms, each about twice the one before."""

_LETTER = 6.2  # pixels, Arial at 11 px, on the wide side


def chart(rows: Sequence[Mapping[Any, Any]]) -> alt.Chart:
    """Returns a chart of these rows. As a plain dict they avoid Altair's validation of every value, which takes 20
    times as long."""
    return alt.Chart({"values": [dict(row) for row in rows]})


def row_axis(labels: Sequence[str], width: int) -> alt.Y:
    """Returns an axis with a row for each label, in this order. Long labels get at most two fifths of the width."""
    axis = alt.Axis(labelColor=INK, labelFontSize=12, labelLimit=width * 0.4)
    return alt.Y("label:N", sort=list(labels), title=None, axis=axis)


ABOVE = 28
"""Height that a title on top of its axis takes from a legend."""


def above(label: str, **more: Any) -> alt.Axis:
    """Returns a vertical axis with its title on top, where it can be read."""
    title: dict[str, Any] = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": 0, "titleY": -9}
    return alt.Axis(labelExpr=label, **title, **more)


def duration_places(known: Sequence[float], most: int) -> list[int]:
    """Returns at most so many round durations within the range of the values, evenly thinned."""
    low, high = min(known), max(known)
    inside = [place for place in ROUND_DURATIONS if low / 2 < place < high * 2]
    return inside[:: max(1, -(-len(inside) // most))]


def room(ends: Mapping[str, tuple[float, str]], width: int) -> alt.Scale:
    """Returns a scale from 0 on which the text beside each end still fits; ends are label: (value, text)."""
    plot = width - min(width * 0.4, max(len(label) for label in ends) * _LETTER * 1.1) - 20
    top = max(value / max(0.25, 1 - (len(text) * _LETTER + 14) / plot) for value, text in ends.values())
    return alt.Scale(domain=[0, top or 1], nice=False)


def colours(
    parts: Mapping[str, str], *, symbol: str = "square", columns: int = 0, offset: int = 12, legend: bool = True
) -> alt.Color:
    """Returns the colours of the field `part`, with a legend so far above the chart."""
    stroke = 3 if symbol == "stroke" else 0
    shown = alt.Legend(symbolType=symbol, symbolStrokeWidth=stroke, columns=columns, offset=offset)
    scale = alt.Scale(domain=list(parts), range=list(parts.values()))
    return alt.Color("part:N", scale=scale, legend=shown if legend else None)


def texts(rows: Sequence[Mapping[Any, Any]], y: alt.Y, x: str) -> alt.Chart:
    """Returns the `text` of each row, beside its position on x."""
    return chart(rows).mark_text(align="left", dx=8, color=INK).encode(y=y, x=alt.X(f"{x}:Q"), text="text:N")


def texts_over(rows: Sequence[Mapping[Any, Any]], y: alt.Y, x: str, middle: float) -> list[alt.Chart]:
    """Returns the `text` of each row over its position on x: to the right of it, or to the left beyond the middle, so
    that it stays within the chart."""
    low, high = ([row for row in rows if (row[x] > middle) is beyond] for beyond in (False, True))
    right = chart(low).mark_text(align="left", dx=-4, dy=-13, color=INK)
    left = chart(high).mark_text(align="right", dx=4, dy=-13, color=INK)
    sides = [side for side, own in ((right, low), (left, high)) if own]
    return [side.encode(y=y, x=alt.X(f"{x}:Q"), text="text:N") for side in sides]
