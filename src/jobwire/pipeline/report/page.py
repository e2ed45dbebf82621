"""Writes the report as one HTML page without external parts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from string import Template

from jobwire.look.palette import FONT, NAMED, variables
from jobwire.pipeline.report.drawing import svg
from jobwire.pipeline.report.palette import CHART_FONT, DARK, PROTOCOL, dark_style
from jobwire.pipeline.report.parts import Cell, Chart, Figure, Grid, Section
from jobwire.pipeline.report.period import Period

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
        sections="\n".join(_section(section) for section in sections),
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


def _section(section: Section) -> str:
    text = f"<p>{escape(section.text)}</p>" if section.text else ""
    charts = "\n".join(_chart(chart) for chart in section.charts)
    charts = f'<div class="charts">{charts}</div>' if charts else ""
    return (
        f'<section id="{section.key}"><h3>{escape(section.topic)}</h3><h2>{escape(section.finding)}</h2>{text}'
        f"{charts}{''.join(_grid(grid) for grid in section.grids)}</section>"
    )


def _chart(chart: Chart) -> str:
    drawing = svg(chart.drawing, chart.caption)
    return f'<figure class="span{chart.span}"><figcaption>{escape(chart.caption)}</figcaption>{drawing}</figure>'


def _grid(grid: Grid) -> str:
    sides = ["figure" if column in grid.figures else "" for column in grid.columns]
    head = "".join(
        f'<th scope="col" class="{side}">{escape(column)}</th>'
        for column, side in zip(grid.columns, sides, strict=True)
    )
    body = "\n".join(
        "<tr>" + "".join(_cell(cell, side) for cell, side in zip(row, sides, strict=True)) + "</tr>"
        for row in grid.rows
    )
    return (
        f'<div class="table"><table><caption>{escape(grid.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: str | Cell, side: str) -> str:
    if isinstance(cell, str):
        return f'<td class="{side}">{escape(cell)}</td>'
    return f'<td class="{side}"><span class="tone {escape(cell.tone)}">{escape(cell.text)}</span></td>'
