"""Charts of a period as inline SVG: bars of counts and lines of durations. Colours come from the style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime

from markupsafe import Markup

from jobwire.dashboard.history_figures import Percentiles, Point
from jobwire.look.words import measured

_WIDTH, _HEIGHT = 460, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 6, 8, 22
_INNER, _DEEP = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_LABELS = 5
"""Dates on an axis at most."""
LEVELS = ("p99", "p95", "p50")


def stacked(points: Sequence[Point], words: str) -> Markup:
    """Returns a bar for each point: jobs that completed, and on top of them those that failed."""
    return _bars(points, lambda point: (point.completed, point.failed), words)


def failed(points: Sequence[Point], words: str) -> Markup:
    """Returns a bar for each point: the jobs that failed alone, which are too few to be seen among all."""
    return _bars(points, lambda point: (0, point.failed), words)


def _bars(points: Sequence[Point], parts_of: Callable[[Point], tuple[int, int]], words: str) -> Markup:
    top = nice(max((sum(parts_of(point)) for point in points), default=0))
    step = _INNER / max(len(points), 1)
    width = max(step * 0.76, 1.0)
    parts: list[Markup] = []
    for number, point in enumerate(points):
        x = _LEFT + number * step + (step - width) / 2
        title = f"{_moment(point.at, points)}: {point.completed:,} completed, {point.failed:,} failed"
        good, bad = (part / top * _DEEP for part in parts_of(point))
        parts.append(Markup("<g><title>{}</title>{}{}</g>").format(
            title,
            _rect("completed", x, _TOP + _DEEP - good, width, good),
            _rect("failed", x, _TOP + _DEEP - good - bad, width, bad),
        ))  # fmt: skip
    return _framed(points, top, short_number, Markup("").join(parts), words)


def _rect(kind: str, x: float, y: float, width: float, height: float) -> Markup:
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        kind, _n(x), _n(y), _n(width), _n(height)
    )


def durations(points: Sequence[Point], of: Callable[[Point], Percentiles | None], words: str) -> Markup:
    """Returns a line for each percentile. A point without runs interrupts the lines."""
    top = nice_duration(max((found.p99 for found in map(of, points) if found), default=0.0))
    step = _INNER / max(len(points), 1)
    parts: list[Markup] = []
    for level in LEVELS:
        for run in _runs(points, of):
            places = [
                (_LEFT + (number + 0.5) * step, _TOP + _DEEP - getattr(found, level) / top * _DEEP)
                for number, found in run
            ]
            if len(places) == 1:
                [(x, y)] = places
                shape = Markup('<circle class="{}" cx="{}" cy="{}" r="2.5"/>').format(level, _n(x), _n(y))
            else:
                shape = Markup('<polyline class="{}" points="{}"/>').format(
                    level, " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
                )
            parts.append(shape)
    for number, point in enumerate(points):
        if found := of(point):
            levels = ", ".join(f"{level} {measured(getattr(found, level))}" for level in LEVELS[::-1])
            parts.append(
                Markup('<rect class="hover" x="{}" y="{}" width="{}" height="{}"><title>{}: {}</title></rect>').format(
                    _n(_LEFT + number * step), _TOP, _n(step), _DEEP, _moment(point.at, points), levels
                )
            )
    return _framed(points, top, measured, Markup("").join(parts), words)


def small_bars(numbers: Sequence[int], words: str, kind: str) -> Markup:
    """Returns bars without axes, for a cell of a table."""
    top = max(numbers, default=0) or 1
    step = 120 / max(len(numbers), 1)
    bars = Markup("").join(
        Markup('<rect x="{}" y="{}" width="{}" height="{}"/>').format(
            _n(place * step), _n(20 - one / top * 20), _n(max(step * 0.8, 0.8)), _n(one / top * 20)
        )
        for place, one in enumerate(numbers)
        if one
    )
    return Markup(
        '<svg class="bars {}" viewBox="0 0 120 20" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(kind, words, bars)


def nice(value: float) -> float:
    """Returns a round number that is not below the value.

    >>> nice(0), nice(7), nice(23), nice(1200), nice(253_000)
    (4, 8, 30, 1500, 300000)
    """
    if value <= 4:
        return 4
    power = 10 ** math.floor(math.log10(value))
    return next(round(power * one) for one in (1, 1.5, 2, 3, 4, 6, 8, 10) if power * one >= value)


def nice_duration(seconds: float) -> float:
    """Returns a round duration that is not below the given one.

    >>> nice_duration(0.03), nice_duration(4.2), nice_duration(70), nice_duration(9000)
    (0.05, 5, 120, 10800)
    """
    if seconds > 86_400:
        return math.ceil(seconds / 86_400) * 86_400
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800,
             21600, 43200, 86_400)  # fmt: skip
    return next(step for step in steps if step >= seconds)


def short_number(value: float) -> str:
    """Returns a count of few characters.

    >>> short_number(0), short_number(950), short_number(2500), short_number(3_000_000)
    ('0', '950', '2.5k', '3M')
    """
    for unit, length in (("M", 1e6), ("k", 1e3)):
        if value >= length:
            return f"{value / length:g}{unit}"
    return f"{value:g}"


def _framed(points: Sequence[Point], top: float, spell: Callable[[float], str], inside: Markup, words: str) -> Markup:
    """Returns the axes around the shapes."""
    lines: list[Markup] = []
    for share in (0.0, 0.5, 1.0):
        y = _TOP + _DEEP * (1 - share)
        text = spell(top * share) if share else "0"
        lines.append(
            Markup('<line x1="{}" y1="{}" x2="{}" y2="{}"/><text class="y" x="{}" y="{}">{}</text>').format(
                _LEFT, _n(y), _WIDTH - _RIGHT, _n(y), _LEFT - 6, _n(y + 4), text
            )
        )
    every = max(1, math.ceil(len(points) / _LABELS))
    step = _INNER / max(len(points), 1)
    for number in range(0, len(points), every):
        x = _LEFT + (number + 0.5) * step
        lines.append(
            Markup('<text class="x" x="{}" y="{}">{}</text>').format(
                _n(x), _HEIGHT - 6, _moment(points[number].at, points)
            )
        )
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>').format(
        _WIDTH, _HEIGHT, words, Markup("").join(lines), inside
    )


def _runs(points: Sequence[Point], of: Callable[[Point], Percentiles | None]) -> list[list[tuple[int, Percentiles]]]:
    """Returns the points that follow one another without a gap, with their numbers."""
    runs: list[list[tuple[int, Percentiles]]] = [[]]
    for number, point in enumerate(points):
        found = of(point)
        if found is None:
            runs.append([])
        else:
            runs[-1].append((number, found))
    return [run for run in runs if run]


def _moment(at: datetime, points: Sequence[Point]) -> str:
    hourly = len(points) < 2 or (points[1].at - points[0].at).total_seconds() < 86_400
    return f"{at:%H:%M}" if hourly else f"{at.day} {at:%b}"


def _n(value: float) -> str:
    return f"{value:.1f}"
