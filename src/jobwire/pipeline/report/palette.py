"""Colours and type of the charts.

People with any of the common colour deficiencies can distinguish the hues, and an outcome or a protocol has the same
colour in every chart. Charts are drawn once, for a light page. On a dark screen the page's style replaces each colour
named here by its dark counterpart, so a chart may use no other.
"""

from __future__ import annotations

from typing import Any

from jobwire.look import palette as look
from jobwire.look.palette import GRID, INK, MUTED, OTHER, OUTCOME
from jobwire.pipeline.stores.dialect import all_dialects

PROTOCOL = {dialect.protocol: dialect.colour.light for dialect in all_dialects()}
LEVEL = {"p50": "#a5c8e1", "p95": "#4a90c2", "p99": "#123f66"}
HEAT = ("#eef4f9", "#cfe1ef", "#a3c6e0", "#6ba3cc", "#3a78ab", "#174a76")
CLASSES = (OUTCOME["failed"], "#edae49", "#7d6b91", "#66a182", OTHER)
"""Classes of errors in the order of their weight, the last for all the others."""

DARK = {
    **look.DARK,
    **{dialect.colour.light: dialect.colour.dark for dialect in all_dialects()},
    **dict(zip(LEVEL.values(), ("#3f76a3", "#68a6dc", "#d4e6f5"), strict=True)),
    **dict(zip(HEAT, ("#1d2a38", "#21405c", "#295a83", "#3a7bb0", "#6ba8d6", "#b9dcf5"), strict=True)),
    **dict(zip(CLASSES[1:4], ("#f0bd66", "#a793bd", "#7fbd9a"), strict=True)),
}

CHART_FONT = "Arial, 'Liberation Sans', Helvetica, system-ui, sans-serif"
"""Charts are laid out by the widths of Arial's letters, so they are shown in it, or in a font of the same widths."""

THEME: dict[str, Any] = {
    "font": "Arial, sans-serif",
    "aria": False,
    "background": None,
    "view": {"stroke": None},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "gridColor": GRID,
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
        "labelLimit": 230,
    },
    "axisX": {"grid": False, "titlePadding": 8},
    "legend": {
        "orient": "top",
        "direction": "horizontal",
        "title": None,
        "labelColor": MUTED,
        "labelFontSize": 11,
        "symbolType": "square",
        "symbolSize": 90,
        "symbolStrokeWidth": 0,
        "offset": 12,
        "columnPadding": 18,
    },
    "text": {"color": INK, "fontSize": 11},
}


def dark_style() -> str:
    """Returns CSS rules that give every colour of a chart its dark counterpart."""
    return "\n".join(
        f'svg [{paint}="{light}"] {{ {paint}: {dark}; }}'
        for light, dark in DARK.items()
        for paint in ("fill", "stroke")
    )
