"""The picture of a flow: a tree of boxes from left to right, each a link to its job. Colours come from the style sheet.

A box is as high as two lines of text, and a job stands in the middle of the jobs that it waits for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup

from jobwire.model import Job, JobKey, JobTree

_BOX, _TALL, _ACROSS, _BETWEEN = 208, 42, 40, 8
_MARGIN = 2
_LONGEST = 26
"""Characters of a line in a box."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A job of the tree with the place of its box, and those that it waits for."""

    job: Job
    x: float
    y: float
    below: tuple[Placed, ...]


def picture(tree: JobTree, chosen: JobKey, link_to: Callable[[Job], str], words: str) -> Markup:
    """Returns the tree as SVG. The box of the chosen job is marked."""
    rows = [0]
    root = _place(tree, 0, rows)
    boxes = list(_all(root))
    width = max(box.x for box in boxes) + _BOX + _MARGIN
    height = rows[0] * (_TALL + _BETWEEN) - _BETWEEN + 2 * _MARGIN
    lines = Markup("").join(_line(box, child) for box in boxes for child in box.below)
    drawn = Markup("").join(
        _box(box, link_to(box.job), chosen=JobKey(box.job.queue, box.job.id) == chosen) for box in boxes
    )
    return Markup('<svg class="flow" width="{}" height="{}" viewBox="0 0 {} {}" aria-label="{}">{}{}</svg>').format(
        _n(width), _n(height), _n(width), _n(height), words, lines, drawn
    )


def in_order(children: Iterable[JobTree]) -> list[JobTree]:
    """Returns jobs by queue, name and id, with numbers in their order: some stores keep children without one."""
    return sorted(children, key=lambda one: [_parts(text) for text in (one.job.queue, one.job.name, one.job.id)])


def _parts(text: str) -> list[tuple[int, str]]:
    return [(int(part[:18]) if part.isdecimal() else -1, part) for part in re.split(r"([0-9]+)", text[:200])]


def _place(tree: JobTree, depth: int, rows: list[int]) -> Placed:
    x = depth * (_BOX + _ACROSS) + _MARGIN
    below = tuple(_place(child, depth + 1, rows) for child in tree.children)
    if below:
        return Placed(tree.job, x, (below[0].y + below[-1].y) / 2, below)
    rows[0] += 1
    return Placed(tree.job, x, (rows[0] - 1) * (_TALL + _BETWEEN) + _MARGIN, ())


def _all(box: Placed) -> Iterator[Placed]:
    yield box
    for child in box.below:
        yield from _all(child)


def _line(box: Placed, child: Placed) -> Markup:
    x, y, end, down = box.x + _BOX, box.y + _TALL / 2, child.x, child.y + _TALL / 2
    middle = (x + end) / 2
    return Markup('<path class="{}" d="M{} {}C{} {} {} {} {} {}"/>').format(
        child.job.state, *map(_n, (x, y, middle, y, middle, down, end, down))
    )


def _box(box: Placed, href: str, *, chosen: bool) -> Markup:
    job = box.job
    first = job.name if job.name not in ("", job.queue) else job.queue
    state = job.state.replace("_", " ")
    second = f"{state} · {job.id}" if first == job.queue else f"{state} · {job.queue}"
    named = f"{first}, " if first != job.queue else ""
    title = f"{named}{job.queue} {job.id}: {state}" + (
        f", {job.error.partition(chr(10))[0][:200]}" if job.error else ""
    )
    return Markup(
        '<a href="{}" class="{}{}"{}><title>{}</title><rect class="box" x="{}" y="{}" width="{}" height="{}" rx="3"/>'
        '<rect class="edge" x="{}" y="{}" width="4" height="{}"/>'
        '<text class="name" x="{}" y="{}">{}</text><text x="{}" y="{}">{}</text></a>'
    ).format(
        href, job.state, " chosen" if chosen else "", Markup(' aria-current="true"') if chosen else "", title,
        _n(box.x), _n(box.y), _BOX, _TALL, _n(box.x), _n(box.y), _TALL,
        _n(box.x + 13), _n(box.y + 18), _short(first), _n(box.x + 13), _n(box.y + 34), _short(second, _LONGEST + 2),
    )  # fmt: skip


def _short(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _n(value: float) -> str:
    return f"{value:.1f}"
