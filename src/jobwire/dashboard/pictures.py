"""Small pictures as inline SVG: the last hour of a queue, and the life of a job. Colours come from the style sheet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from jobwire.dashboard.lifetime import Span
from jobwire.dashboard.series import Bin

_WIDTH, _HEIGHT = 240, 36
_FEWEST = 10
"""Half minutes that a line spans at least."""


def sparkline(bins: Sequence[Bin], value: Callable[[Bin], float], words: str, kind: str) -> Markup:
    """Returns a line of one figure over the time that the bins span, with a step for each bin. `words` describe it to
    people who don't see it."""
    first = bins[0].number if bins else 0
    last = max(bins[-1].number + 1 if bins else 0, first + _FEWEST)
    points = [((one.number + end - first) / (last - first) * _WIDTH, value(one)) for one in bins for end in (0, 1)]
    most = max((figure for _, figure in points), default=0) or 1
    shape = " ".join(f"{x:.1f},{_HEIGHT - 2 - figure / most * (_HEIGHT - 4):.1f}" for x, figure in points)
    return Markup(
        '<svg class="spark {}" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<line x1="0" y1="{}" x2="{}" y2="{}"/><polyline points="{}"/></svg>'
    ).format(kind, _WIDTH, _HEIGHT, words, _HEIGHT - 1, _WIDTH, _HEIGHT - 1, shape)


def progress_bar(good: int, bad: int, total: int, words: str) -> Markup:
    """Returns a bar of two parts of a whole, to scale. A part that is not empty is at least one unit wide."""
    widths = [max(part / total * 1000, 4.0) if part and total else 0.0 for part in (good, bad)]
    first = min(widths[0], 1000 - widths[1])
    return Markup(
        '<svg class="progress" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="completed" x="0" y="0" width="{}" height="10"/>'
        '<rect class="failed" x="{}" y="0" width="{}" height="10"/></svg>'
    ).format(words, f"{first:.1f}", f"{first:.1f}", f"{widths[1]:.1f}")


def timeline(spans: Sequence[Span], words: str) -> Markup:
    """Returns the spans of a job's life as a bar, to scale. A span too short to be seen is drawn one unit wide."""
    begin, end = spans[0].begin, spans[-1].end
    whole = max((end - begin).total_seconds(), 0.001)
    parts: list[Markup] = []
    for span in spans:
        x = (span.begin - begin).total_seconds() / whole * 1000
        width = max((span.end - span.begin).total_seconds() / whole * 1000, 2.0)
        parts.append(
            Markup('<rect class="{}" x="{}" y="0" width="{}" height="20"><title>{}</title></rect>').format(
                span.kind, f"{min(x, 1000 - width):.1f}", f"{width:.1f}", span.words
            )
        )
    return Markup(
        '<svg class="timeline" viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(words, Markup("").join(parts))
