"""The live table."""

from __future__ import annotations

from collections import deque

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jobwire.cli.demo.histogram import Histogram, milliseconds
from jobwire.cli.demo.snapshot import Snapshot
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
        self._speeds: deque[float] = deque(maxlen=_HISTORY)

    def draw(self, snapshot: Snapshot) -> RenderableType:
        table = Table(box=SIMPLE_HEAD, header_style="dim", padding=(0, self._gap), show_edge=False, pad_edge=False)
        table.add_column("\nqueue", no_wrap=True)
        for state, heading in _STATES:
            table.add_column(f"\n{heading}", justify="right", no_wrap=True, style=STATE_STYLES[state])
        table.add_column("\njobs/s", justify="right", no_wrap=True, style="bold")
        table.add_column("wait ms\np50 · p95", justify="right", no_wrap=True)
        table.add_column("run ms\np50 · p95", justify="right", no_wrap=True)
        for store in snapshot.stores:
            for measured in store.queues:
                meter = measured.meter
                table.add_row(
                    Text.assemble((store.protocol, "bold"), f" {measured.queue.name}"),
                    *(_number(meter.counts.get(state, 0)) for state, _ in _STATES),
                    f"{meter.speed:,.0f}",
                    _spread(meter.waits),
                    _spread(meter.runs),
                )
        return Group(table, "", _campaign(snapshot), self._curve(snapshot), _progress(snapshot))

    def _curve(self, snapshot: Snapshot) -> Text:
        queues = [measured for store in snapshot.stores for measured in store.queues]
        speed = sum(measured.meter.speed for measured in queues)
        self._speeds.append(speed)
        top = max(*self._speeds, 1.0)
        bars = "".join(_BARS[round(one / top * (len(_BARS) - 1))] for one in self._speeds)
        retries = sum(measured.meter.retried for measured in queues)
        return Text.assemble((bars, "green"), f" {speed:,.0f} jobs/s", (f" · {retries:,} retries", "dim"))


def _campaign(snapshot: Snapshot) -> Table:
    row = Table.grid(padding=(0, 1))
    state = None if snapshot.campaign is None else snapshot.campaign.state
    if state is not None:
        done = state.sent + state.failed
        bar = ProgressBar(total=max(state.total_jobs, 1), completed=done, width=_BAR)
        text = f"{done:,} of {state.total_jobs:,} messages · {state.failed:,} failed · {state.delivery_rate:,} a minute"
        row.add_row(bar, Text.assemble(("campaign ", "bold"), f"{state.name} ", (text, "dim")))
    return row


def _progress(snapshot: Snapshot) -> Table:
    row = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=snapshot.seconds, completed=min(snapshot.elapsed, snapshot.seconds), width=_BAR)
    row.add_row(bar, Text(f"{snapshot.elapsed:.0f} s · {snapshot.phase}", style="dim"))
    return row


def _number(value: int) -> Text:
    return Text(f"{value:,}", style="" if value else "dim")


def _spread(durations: Histogram) -> Text:
    low, high = durations.percentile(0.50), durations.percentile(0.95)
    if low is None or high is None:
        return Text("·", style="dim")
    return Text(f"{milliseconds(low)} · {milliseconds(high)}")
