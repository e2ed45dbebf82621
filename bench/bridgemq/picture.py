"""The backlog curve as plain SVG: microseconds per claim over the number of jobs for others, both axes logarithmic."""

from __future__ import annotations

import math
from html import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 30, 60, 60
FONT = 'font-family="sans-serif" font-size="12"'
COLOURS = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e")


def draw(sizes: list[int], lines: dict[str, list[float]], title: str) -> str:
    lowest = 10 ** math.floor(math.log10(min(min(line) for line in lines.values())))
    highest = 10 ** math.ceil(math.log10(max(max(line) for line in lines.values())))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" font-size="16" font-weight="bold">{escape(title)}</text>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">jobs for others that wait</text>',
        f'<text x="{LEFT}" y="44">µs inside the server per claim</text>',
    ]

    def x(size: float) -> float:
        span = math.log10(sizes[-1] / sizes[0])
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log10(size / sizes[0]) / span

    def y(value: float) -> float:
        span = math.log10(highest / lowest)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log10(value / lowest) / span

    step = lowest
    while step <= highest:
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(step):.1f}" y2="{y(step):.1f}" stroke="#dee2e6"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(step) + 4:.1f}" text-anchor="end">{step:,.0f}</text>')
        step *= 10
    under = HEIGHT - BOTTOM + 18
    parts += [f'<text x="{x(size):.1f}" y="{under}" text-anchor="middle">{size:,}</text>' for size in sizes]
    for number, (name, values) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in zip(sizes, values, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for size, value in zip(sizes, values, strict=True):
            parts.append(f'<circle cx="{x(size):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>')
        label = f"{name}: {values[0]:,.0f} to {values[-1]:,.0f} µs"
        row = TOP + 18 + 17 * number
        parts.append(f'<text x="{LEFT + 10}" y="{row}" fill="{colour}">{escape(label)}</text>')
    return "\n".join([*parts, "</svg>", ""])
