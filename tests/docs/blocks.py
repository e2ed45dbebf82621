"""The fenced blocks of the documentation, as text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```[ ]*$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced block, with the line of its page on which it begins."""

    page: str
    line: int
    language: str
    title: str
    source: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Returns the names of all pages, relative to docs/."""
    return sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def blocks(page: str) -> list[Block]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found: list[Block] = []
    for fence in _FENCE.finditer(text):
        language, _, rest = fence[2].partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        line = text.count("\n", 0, fence.start()) + 1
        source = "\n".join(row.removeprefix(fence[1]) for row in fence[3].splitlines()) + "\n"
        found.append(Block(page, line, language, title[1] if title else "", source))
    return found


def outside_fences(page: str) -> str:
    """Returns the text of a page without its fenced blocks."""
    return _FENCE.sub("", (DOCS / page).read_text(encoding="utf-8"))


def same_output(shown: str, expected: str) -> bool:
    """Compares what a command printed with what its page shows: `…` stands for any text, runs of spaces are one, and
    ids, times and durations differ from run to run."""
    pattern = ".*?".join(map(re.escape, _plain(expected).split("…")))
    return re.fullmatch(pattern, _plain(shown), re.DOTALL) is not None


_VARYING = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"  # a UUID
    r"|\b\d\d:\d\d:\d\d(?= [A-Z]{4,})"  # the time of a log line
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d:\d\d)?"  # a date or a time
    r"|\b\d+(?:\.\d+)? ?(?:ms|s|m|h|d)\b(?: ago)?|\bnow\b"  # a duration
)


def _plain(text: str) -> str:
    lines = [re.sub(r"\s+", " ", _VARYING.sub("<varies>", line)).strip() for line in text.strip().splitlines()]
    return "\n".join(line for line in lines if line)
