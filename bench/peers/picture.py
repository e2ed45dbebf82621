"""The rates as plain SVG: one group of bars for each scenario, as parts of jobwire's rate, on a logarithmic axis."""

from __future__ import annotations

import math
from html import escape

from bench.peers.scenarios import Scenario
from bench.peers.summary import OURS, Runs, figure

WIDTH, LEFT, RIGHT, TOP = 860, 230, 120, 50
BAR, GAP = 11, 12
LOWEST, HIGHEST = 0.001, 10.0
COLOURS = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#1864ab", "#e67700", "#495057", "#862e9c")
FONT = 'font-family="sans-serif" font-size="11"'


def draw(scenarios: list[Scenario], names: list[str], runs: Runs) -> str:
    height = TOP + len(scenarios) * (len(names) * BAR + GAP) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="22" font-size="16" font-weight="bold">Python queues on Redis, times {OURS}</text>',
        '<text x="16" y="40">Longer is better. The vertical line is jobwire; the axis is logarithmic.</text>',
    ]
    top = TOP
    for scenario in scenarios:
        middle = top + len(names) * BAR / 2 + 4
        parts.append(f'<text x="{LEFT - 10}" y="{middle}" text-anchor="end">{escape(scenario.title)}</text>')
        for number, name in enumerate(names):
            found = figure(scenario, runs[scenario.name][name], runs[scenario.name][OURS])
            y = top + number * BAR
            if found is None:
                parts.append(f'<text x="{LEFT + 4}" y="{y + 9}" fill="#868e96">{escape(name)}: –</text>')
                continue
            width = max(1.0, _x(found.ratio) - LEFT)
            colour = COLOURS[number % len(COLOURS)]
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 2}" fill="{colour}"/>')
            label = f"{name} {found.ratio:.2f}×"
            parts.append(f'<text x="{LEFT + width + 4:.1f}" y="{y + 9}">{escape(label)}</text>')
        top += len(names) * BAR + GAP
    line = _x(1.0)
    parts.append(
        f'<line x1="{line:.1f}" x2="{line:.1f}" y1="{TOP}" y2="{top}" stroke="#212529" stroke-dasharray="3 3"/>'
    )
    return "\n".join([*parts, "</svg>", ""])


def _x(ratio: float) -> float:
    held = min(max(ratio, LOWEST), HIGHEST)
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log(held / LOWEST) / math.log(HIGHEST / LOWEST)
