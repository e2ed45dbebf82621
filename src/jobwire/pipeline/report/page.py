"""Writes the report as one HTML page without external parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from string import Template

from jobwire.look.palette import FONT, NAMED, variables
from jobwire.pipeline.report.drawing import svg
from jobwire.pipeline.report.palette import CHART_FONT, DARK, PROTOCOL, dark_style
from jobwire.pipeline.report.parts import Cell, Chart, Figure, Grid, Section
from jobwire.pipeline.report.period import Period

_COLUMNS_ON_A_PHONE = 3
_HERE = files("jobwire.pipeline.report")


def page(
    title: str,
    period: Period,
    made_at: datetime,
    *,
    headline: Sequence[Figure],
    glance: Grid | None,
    sections: Sequence[Section],
    tables: Sequence[str],
) -> str:
    """Returns the whole page."""
    return _template("page.html").substitute(
        title=escape(title),
        period=escape(str(period)),
        made_at=f"{made_at.day} {made_at:%b %Y, %H:%M}",
        style=_style(),
        figures="\n".join(_figure(figure) for figure in headline),
        contents="\n".join(
            f'<li><a href="#{section.key}"><span>{escape(section.topic)}</span>{escape(section.finding)}</a></li>'
            for section in sections
        ),
        glance=_grid(glance) if glance else "",
        sections="\n".join(_section(section, glance) for section in sections),
        files=", ".join(f'<a href="{name}.csv">{name}</a>' for name in map(escape, tables)),
    )


def _template(name: str) -> Template:
    return Template((_HERE / name).read_text(encoding="utf-8"))


def _style() -> str:
    named = {**NAMED, **PROTOCOL}
    return _template("page.css").substitute(
        font=FONT,
        chart_font=CHART_FONT,
        light=variables(named),
        dark=variables(named, DARK),
        dark_charts=dark_style(),
        protocols="\n".join(f".tone.{name}::before {{ color: var(--{name}); }}" for name in PROTOCOL),
    )


def _figure(figure: Figure) -> str:
    size = " long" if len(figure.value) > 9 else ""
    return (
        f'<div class="figure"><dt>{escape(figure.label)}</dt>'
        f'<dd class="value{size}">{escape(figure.value)}</dd><dd class="note">{escape(figure.note)}</dd></div>'
    )


def _section(section: Section, glance: Grid | None) -> str:
    """Returns a section. What its sentences name is linked to its own rows, else to those of the queues."""
    anchors = dict(glance.anchors) if glance else {}
    for grid in section.grids:
        anchors |= grid.anchors
    text = f"<p>{_linked(section.text, anchors)}</p>" if section.text else ""
    charts = "\n".join(_chart(chart) for chart in section.charts)
    charts = f'<div class="charts">{charts}</div>' if charts else ""
    finding = _linked(section.finding, anchors)
    return (
        f'<section id="{section.key}"><h3>{escape(section.topic)}</h3><h2>{finding}</h2>{text}'
        f"{charts}{''.join(_grid(grid) for grid in section.grids)}</section>"
    )


def _linked(text: str, anchors: Mapping[str, str]) -> str:
    """Returns a sentence in which each name with a row is a link to it, at its first mention."""
    if not anchors:
        return escape(text)
    longest_first = sorted(anchors, key=lambda name: (-len(name), name))
    names = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-])")
    seen: set[str] = set()
    parts: list[str] = []
    end = 0
    for found in names.finditer(text):
        if found[0] not in seen:
            seen.add(found[0])
            parts.append(f'{escape(text[end : found.start()])}<a href="#{anchors[found[0]]}">{escape(found[0])}</a>')
            end = found.end()
    return "".join(parts) + escape(text[end:])


def _chart(chart: Chart) -> str:
    wide, narrow = svg(chart.drawing, chart.caption), svg(chart.narrow, chart.caption)
    return (
        f'<figure class="span{chart.span}"><figcaption>{escape(chart.caption)}</figcaption>'
        f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div></figure>'
    )


def _grid(grid: Grid) -> str:
    sides = ["figure" if column in grid.figures else "" for column in grid.columns]
    head = "".join(
        f'<th scope="col" class="{side}">{escape(column)}</th>'
        for column, side in zip(grid.columns, sides, strict=True)
    )
    ids = [f' id="{grid.key}-{number}"' if grid.key else "" for number in range(1, len(grid.rows) + 1)]
    body = "\n".join(
        f"<tr{own}>" + "".join(_cell(cell, side) for cell, side in zip(row, sides, strict=True)) + "</tr>"
        for own, row in zip(ids, grid.rows, strict=True)
    )
    size = " long" if len(grid.columns) > _COLUMNS_ON_A_PHONE else ""
    caption = escape(grid.caption)
    return (
        f'<div class="table{size}" tabindex="0" role="region" aria-label="{caption}">'
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: str | Cell, side: str) -> str:
    if isinstance(cell, str):
        return f'<td class="{side}">{escape(cell)}</td>'
    return f'<td class="{side}"><span class="tone {escape(cell.tone)}">{escape(cell.text)}</span></td>'
