"""Watchers of a demo: a live table in a terminal, a line per second elsewhere, nothing with --json."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from rich.live import Live
from rich.text import Text

from jobwire.cli.demo.board import Board
from jobwire.cli.demo.snapshot import Snapshot, Watch
from jobwire.cli.output import console


@contextmanager
def watcher(*, as_json: bool) -> Generator[Watch]:
    """Yields the watcher that suits the output."""
    if as_json:
        yield lambda snapshot: None
    elif sys.stdout.isatty():
        terminal = console()
        board = Board(terminal.width)
        waiting = Text("starting producers and workers …", style="dim")
        with Live(waiting, console=terminal, auto_refresh=False) as live:
            yield lambda snapshot: live.update(board.draw(snapshot), refresh=True)
    else:
        yield Lines()


class Lines:
    """Prints progress as plain text, one line per second."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.elapsed < self._next and snapshot.phase not in ("done", "interrupted"):
            return
        self._next = snapshot.elapsed + 1.0
        for store in snapshot.stores:
            meters = [measured.meter for measured in store.queues]
            sys.stdout.write(
                f"{snapshot.elapsed:5.1f} s  {store.protocol}: {sum(meter.added for meter in meters)} added, "
                f"{sum(meter.stored_completed for meter in meters)} completed, "
                f"{sum(meter.stored_failed for meter in meters)} failed, {sum(meter.left for meter in meters)} left, "
                f"{sum(meter.speed for meter in meters):.0f} jobs/s\n"
            )
        state = None if snapshot.campaign is None else snapshot.campaign.state
        if state is not None:
            sys.stdout.write(
                f"{snapshot.elapsed:5.1f} s  campaign {state.name}: {state.sent} sent, {state.failed} failed, "
                f"{state.total_jobs - state.sent - state.failed} left\n"
            )
        sys.stdout.flush()
