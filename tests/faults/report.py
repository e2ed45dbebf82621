"""The report: the latest result of each fault on each store, as a table and as a picture in the documentation."""

from __future__ import annotations

import fcntl
import json
import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from faults.inject import FAULTS
from faults.run import Report
from faults.stores import STORES

_FILE = Path(__file__).with_name("results.json")
_DOCS = Path(__file__).parents[2] / "docs"
_BEGIN, _END = "<!-- results: written by make faults -->", "<!-- end of results -->"


@dataclass(frozen=True)
class Result:
    """One line of the report."""

    protocol: str
    fault: str
    seed: int
    times: int
    jobs: int
    refused: int
    again: int
    lost: int
    seconds: int
    memory: tuple[int, int]
    violations: int
    date: str
    machine: str


class Results:
    """The latest result of each fault on each store."""

    def __init__(self, results: list[Result]) -> None:
        self._results = {(one.protocol, one.fault): one for one in results}

    @classmethod
    def read(cls) -> Results:
        if not _FILE.exists():
            return cls([])
        return cls([Result(**{**one, "memory": tuple(one["memory"])}) for one in json.loads(_FILE.read_text())])

    def of(self, protocol: str, fault: str) -> Result | None:
        return self._results.get((protocol, fault))

    def all(self) -> list[Result]:
        """Returns all results, in the order of faults and stores."""
        found = (self.of(protocol, fault) for fault in FAULTS for protocol in STORES)
        return [one for one in found if one is not None]

    def add(self, report: Report) -> None:
        """Puts a result in the place of an older one, in the file and the page too."""
        figures = report.figures
        one = Result(
            report.protocol,
            report.fault,
            report.seed,
            report.times,
            figures.acknowledged,
            figures.refused,
            figures.again,
            figures.lost,
            round(report.seconds),
            report.memory,
            len(report.violations),
            datetime.now(UTC).date().isoformat(),
            machine(),
        )
        with Path(__file__).open() as turn:  # another run may write at the same time
            fcntl.flock(turn, fcntl.LOCK_EX)
            self._results = {**Results.read()._results, (one.protocol, one.fault): one}
            self.write()

    def write(self) -> None:
        """Writes the file, and the page of the documentation that shows it."""
        fresh = _FILE.with_suffix(".new")
        fresh.write_text(json.dumps([asdict(one) for one in self.all()], indent=1) + "\n")
        fresh.replace(_FILE)  # as a whole: others read it at any time
        write_page(self)


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def write_page(results: Results) -> None:
    """Puts the table into the page, and draws the picture."""
    page = _DOCS / "faults.md"
    text = page.read_text()
    before, _, rest = text.partition(_BEGIN)
    after = rest.partition(_END)[2]
    page.write_text(f"{before}{_BEGIN}\n\n{table(results)}\n\n{_END}{after}")
    (_DOCS / "images" / "faults.svg").write_text(picture(results))


def table(results: Results) -> str:
    lines = [
        "| fault | store | times | jobs | adds that raised | run again | outcomes refused | MB | seconds | result |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in results.all():
        verdict = "held" if not one.violations else f"**{one.violations} violations**"
        lines.append(
            f"| `{one.fault}` | {one.protocol} | {one.times} | {one.jobs:,} | {one.refused} | {one.again} "
            f"| {one.lost} | {one.memory[0]} → {one.memory[1]} | {one.seconds} | {verdict} |"
        )
    dates = sorted({one.date for one in results.all()})
    machines = sorted({one.machine for one in results.all()})
    seeds = sorted({one.seed for one in results.all()})
    shown = f"Runs of {' to '.join(dict.fromkeys((dates[0], dates[-1])))} on {'; '.join(machines)}. " if dates else ""
    return "\n".join(lines) + f"\n\n{shown}Seeds: {', '.join(map(str, seeds))}."


_ROW, _COLUMN, _LEFT, _TOP = 26, 120, 190, 40


def picture(results: Results) -> str:
    """Draws a grid of faults and stores."""
    width, height = _LEFT + _COLUMN * len(STORES) + 10, _TOP + _ROW * len(FAULTS) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="ui-sans-serif, sans-serif" font-size="13" role="img" aria-label="Faults and their results">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for column, protocol in enumerate(STORES):
        x = _LEFT + column * _COLUMN + (_COLUMN - 4) // 2
        parts.append(f'<text x="{x}" y="{_TOP - 14}" text-anchor="middle" font-weight="600">{protocol}</text>')
    for row, (fault, kind) in enumerate(FAULTS.items()):
        y = _TOP + row * _ROW
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 17}" text-anchor="end">{escape(fault.replace("_", " "))}</text>')
        for column, protocol in enumerate(STORES):
            colour, words = _cell(results.of(protocol, fault), has_notion=protocol in kind.protocols)
            x = _LEFT + column * _COLUMN
            parts.append(f'<rect x="{x}" y="{y}" width="{_COLUMN - 4}" height="{_ROW - 4}" rx="3" fill="{colour}"/>')
            parts.append(
                f'<text x="{x + (_COLUMN - 4) // 2}" y="{y + 16}" text-anchor="middle" font-size="11"'
                f' fill="#1b1b1b">{escape(words)}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _cell(result: Result | None, *, has_notion: bool) -> tuple[str, str]:
    if not has_notion:
        return "#eceff1", "–"
    if result is None:
        return "#fff3cd", "not run"
    if result.violations:
        return "#f5b7b1", f"{result.violations} violations"
    return "#b7e1c0", f"{result.times}× held"
