"""The live table."""

from __future__ import annotations

from collections import deque

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jobwire.cli.demo.histogram import Histogram, milliseconds
from jobwire.cli.demo.moment import Moment
from jobwire.cli.jobview import STATE_STYLES
from jobwire.model import State

_BARS = "▁▂▃▄▅▆▇█"
_HISTORY = 48
_BAR = 32
_ROOMY = 96
_STATES = (
    (State.WAITING, "waiting"),
    (State.DELAYED, "delayed"),
    (State.ACTIVE, "active"),
    (State.COMPLETED, "done"),
    (State.FAILED, "failed"),
)


class Board:
    """Draws the table. Keeps only the past speed, for its curve. Needs 80 columns and uses more if there are."""

    def __init__(self, width: int) -> None:
        self._gap = 1 if width >= _ROOMY else 0
        self._paces: deque[float] = deque(maxlen=_HISTORY)

    def draw(self, moment: Moment) -> RenderableType:
        table = Table(box=SIMPLE_HEAD, header_style="dim", padding=(0, self._gap), show_edge=False, pad_edge=False)
        table.add_column("\nqueue", no_wrap=True)
        for state, heading in _STATES:
            table.add_column(f"\n{heading}", justify="right", no_wrap=True, style=STATE_STYLES[state])
        table.add_column("\njobs/s", justify="right", no_wrap=True, style="bold")
        table.add_column("wait ms\np50 · p95", justify="right", no_wrap=True)
        table.add_column("run ms\np50 · p95", justify="right", no_wrap=True)
        for station in moment.stations:
            for line in station.lines:
                meter = line.meter
                table.add_row(
                    Text.assemble((station.protocol, "bold"), f" {line.queue.name}"),
                    *(_number(meter.counts.get(state, 0)) for state, _ in _STATES),
                    f"{meter.pace:,.0f}",
                    _spread(meter.waits),
                    _spread(meter.runs),
                )
        return Group(table, "", self._curve(moment), _progress(moment))

    def _curve(self, moment: Moment) -> Text:
        lines = [line for station in moment.stations for line in station.lines]
        pace = sum(line.meter.pace for line in lines)
        self._paces.append(pace)
        top = max(*self._paces, 1.0)
        bars = "".join(_BARS[round(one / top * (len(_BARS) - 1))] for one in self._paces)
        retries = sum(line.meter.retried for line in lines)
        return Text.assemble((bars, "green"), f" {pace:,.0f} jobs/s", (f" · {retries:,} retries", "dim"))


def _progress(moment: Moment) -> Table:
    row = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=moment.seconds, completed=min(moment.elapsed, moment.seconds), width=_BAR)
    row.add_row(bar, Text(f"{moment.elapsed:.0f} s · {moment.phase}", style="dim"))
    return row


def _number(value: int) -> Text:
    return Text(f"{value:,}", style="" if value else "dim")


def _spread(durations: Histogram) -> Text:
    low, high = durations.percentile(0.50), durations.percentile(0.95)
    if low is None or high is None:
        return Text("·", style="dim")
    return Text(f"{milliseconds(low)} · {milliseconds(high)}")
