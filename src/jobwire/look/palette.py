"""Colours and type that the pages of jobwire share: the pipeline's report and the dashboard.

People with any of the common colour deficiencies can distinguish the hues. Text in any of these colours has a contrast
of at least 4.5 to its background, on light and on dark screens.
"""

from __future__ import annotations

from collections.abc import Mapping

INK, MUTED, GRID, PAPER = "#1d2733", "#5b6776", "#e3e7ec", "#ffffff"
OUTCOME = {"completed": "#3b76af", "failed": "#d1495b"}
OTHER = "#8a94a0"

DARK = {
    INK: "#e6eaf0",
    MUTED: "#9ca8b6",
    GRID: "#2c3642",
    PAPER: "#151b23",
    OUTCOME["completed"]: "#5b9bd5",
    OUTCOME["failed"]: "#ef6f7f",
    OTHER: "#8a94a0",
}
"""The dark counterpart of each colour."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

NAMED = {
    "ink": INK,
    "muted": MUTED,
    "grid": GRID,
    "paper": PAPER,
    "good": OUTCOME["completed"],
    "bad": OUTCOME["failed"],
}
"""The names of colours in style sheets: `var(--ink)`."""


def variables(named: Mapping[str, str], colours: Mapping[str, str] | None = None) -> str:
    """Returns the named colours as CSS variables, each replaced by its counterpart in `colours`.

    >>> variables({"ink": INK}), variables({"ink": INK}, DARK)
    ('--ink: #1d2733;', '--ink: #e6eaf0;')
    """
    return " ".join(f"--{name}: {colour if colours is None else colours[colour]};" for name, colour in named.items())
