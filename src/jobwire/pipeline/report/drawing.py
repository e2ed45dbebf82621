"""Renders charts to SVG for use inside a page, and to PNG, without a browser or a network."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import altair as alt
import vl_convert

from jobwire.look.palette import PAPER
from jobwire.pipeline.report.charts import Drawing
from jobwire.pipeline.report.palette import THEME


def svg(drawing: Drawing, title: str) -> str:
    """Returns the drawing as an `<svg>` element of an HTML page, where it needs no namespace."""
    text = vl_convert.vegalite_to_svg(_spec(drawing), vl_version=_version())
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text, count=2)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def png(drawing: Drawing) -> bytes:
    """Returns the drawing on white, at twice its size."""
    spec = _spec(drawing)
    spec["config"]["background"] = PAPER
    return vl_convert.vegalite_to_png(spec, vl_version=_version(), scale=2)


def _spec(drawing: Drawing) -> dict[str, Any]:
    with alt.data_transformers.enable("default", max_rows=None):
        spec = drawing.to_dict()
    spec["config"] = dict(THEME)
    spec["autosize"] = {"type": "fit", "contains": "padding"}
    return spec


def _version() -> str:
    """Returns the newest Vega-Lite that the renderer has. Altair's own is not always among them; these charts need
    little."""
    return max(vl_convert.get_vegalite_versions(), key=lambda text: [int(part) for part in text.split(".")])
