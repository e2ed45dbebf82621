"""The parts of a section: sentences, charts, small tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jobwire.pipeline.report.charts import HALF, PHONE, WIDE, Drawing


class Draws(Protocol):
    """Makes a drawing of some width in pixels."""

    def __call__(self, *, width: int) -> Drawing: ...


@dataclass(frozen=True)
class Chart:
    """A drawing with the line above it. `span` is how many of the page's six columns it takes.

    It is drawn twice, for the page's width and for a phone's: a drawing that is only made smaller can't be read.
    """

    key: str
    caption: str
    draw: Draws
    span: int = 6

    @property
    def drawing(self) -> Drawing:
        return self.draw(width=WIDE if self.span == 6 else HALF)

    @property
    def narrow(self) -> Drawing:
        return self.draw(width=PHONE)


@dataclass(frozen=True)
class Cell:
    """A text in a table; `tone` has classes of the page: `good`, `bad`, `quiet`, `steady` (in one line), a protocol."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class Grid:
    """A small table. Columns named in `figures` hold numbers and stand to the right."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    figures: frozenset[str] = frozenset()
    key: str = ""
    """Sentences link what they name to the row that begins with it, in grids that have a key."""

    @property
    def anchors(self) -> dict[str, str]:
        """Returns the ids of rows by what they begin with; of several, the first row's."""
        begins = [row[0] if isinstance(row[0], str) else row[0].text for row in self.rows] if self.key else []
        return {text: f"{self.key}-{number}" for number, text in reversed([*enumerate(begins, 1)])}


@dataclass(frozen=True)
class Section:
    """A topic with its finding. A section may consist of its finding and text alone, without charts and tables."""

    key: str
    topic: str
    finding: str
    text: str = ""
    charts: Sequence[Chart] = field(default_factory=tuple[Chart, ...])
    grids: Sequence[Grid] = field(default_factory=tuple[Grid, ...])


@dataclass(frozen=True)
class Figure:
    """One number of the headline row."""

    label: str
    value: str
    note: str = ""
