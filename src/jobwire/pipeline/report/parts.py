"""The parts of a section: sentences, charts, small tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobwire.pipeline.report.charts import Drawing


@dataclass(frozen=True)
class Chart:
    """A drawing with the line above it. `span` is how many of the page's six columns it takes."""

    key: str
    caption: str
    drawing: Drawing
    span: int = 6


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
