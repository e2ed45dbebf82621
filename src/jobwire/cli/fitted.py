"""A table with a row per queue that fits the terminal: where it is narrow, whole columns are left out.

Numbers are never cut, since 3,000 would read as 3,0. Long names are cut, but keep a minimum width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

LEAST_NAME = 20
_BETWEEN = 2


@dataclass(slots=True)
class Column:
    """A column beside the names. Of two, the one with the larger `rank` is left out first; 0 always stays."""

    heading: str
    rank: int = 0
    left: bool = False
    cells: list[Text] = field(default_factory=list[Text])

    @property
    def width(self) -> int:
        return max(cell_len(self.heading), *(cell_len(cell.plain) for cell in self.cells), 0)


@dataclass(slots=True)
class FittedTable:
    """The names of queues and columns of figures. `fill` stretches the names to the terminal's width."""

    names: Sequence[Text]
    columns: Sequence[Column]
    fill: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        yield self.fitted(options.max_width)

    def fitted(self, width: int) -> Table:
        """Returns the table in at most this width, as far as the columns that always stay allow it."""
        shown = [column for column in self.columns if column.width]
        longest = max((cell_len(name.plain) for name in self.names), default=0)
        longest = max(longest, len("queue"))
        while _taken(shown) + min(longest, LEAST_NAME) > width and (last := max(shown, key=lambda one: one.rank)).rank:
            shown.remove(last)
        room = max(width - _taken(shown), min(longest, LEAST_NAME))
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("queue", no_wrap=True, overflow="ellipsis", width=room if self.fill else min(longest, room))
        for column in shown:
            justify = "left" if column.left else "right"
            table.add_column(column.heading, justify=justify, no_wrap=True, width=column.width)
        for row, name in enumerate(self.names):
            table.add_row(name, *(column.cells[row] for column in shown))
        return table


def _taken(columns: Sequence[Column]) -> int:
    return sum(column.width + _BETWEEN for column in columns)
