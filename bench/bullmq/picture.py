"""The ratios as a picture: one group of bars per scenario, drawn as plain SVG."""

from __future__ import annotations

from html import escape

from bench.bullmq.scenarios import Scenario
from bench.bullmq.summary import BASELINE

WIDTH = 860
LEFT = 250
RIGHT = 150
TOP = 64
BAR = 15
GAP = 18
FONT = 'font-family="sans-serif" font-size="12"'
COLOURS = ("#0b7285", "#868e96", "#adb5bd", "#e8a33d")


def draw(scenarios: list[Scenario], table: dict[str, dict[str, dict[str, float]]]) -> str:
    """Bars of `times the baseline`; longer is better, for latency too."""
    names = list(next(iter(table.values())))
    colours = dict(zip(names, COLOURS, strict=False))
    most = max(figure["ratio"] for row in table.values() for figure in row.values())
    scale = (WIDTH - LEFT - RIGHT) / most
    group = len(names) * BAR + GAP
    height = TOP + len(scenarios) * group + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="24" font-size="16" font-weight="bold">Times {escape(BASELINE)} (longer is better)</text>',
    ]
    for place, name in enumerate(names):
        x = 16 + place * 150
        parts.append(f'<rect x="{x}" y="36" width="12" height="12" fill="{colours[name]}"/>')
        parts.append(f'<text x="{x + 18}" y="46">{escape(name)}</text>')
    base = LEFT + scale
    parts.append(f'<line x1="{base:.1f}" y1="{TOP - 6}" x2="{base:.1f}" y2="{height - 12}" stroke="#ced4da"/>')
    for number, scenario in enumerate(scenarios):
        y = TOP + number * group
        middle = y + len(names) * BAR / 2 + 4
        parts.append(f'<text x="{LEFT - 10}" y="{middle:.1f}" text-anchor="end">{escape(scenario.title)}</text>')
        for place, name in enumerate(names):
            figure = table[scenario.name][name]
            top, length = y + place * BAR, figure["ratio"] * scale
            parts.append(
                f'<rect x="{LEFT}" y="{top}" width="{length:.1f}" height="{BAR - 2}" fill="{colours[name]}"/>'
                f'<text x="{LEFT + length + 6:.1f}" y="{top + 11}" font-size="11">{_label(scenario, figure)}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def _label(scenario: Scenario, figure: dict[str, float]) -> str:
    amount = f"{figure['p50_ms']:.2f} ms" if scenario.kind == "latency" else f"{figure['rate']:,.0f}/s"
    return f"{figure['ratio']:.2f}× ({amount})"
