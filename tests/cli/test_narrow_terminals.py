"""Tables of queues at a terminal: columns are left out before a number is cut, and names keep a minimum width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType

from jobwire.cli import queueview, topview
from jobwire.figures import QueueFigures
from jobwire.model import State

COUNTS = {State.WAITING: 3000, State.DELAYED: 12, State.ACTIVE: 50, State.COMPLETED: 1_234_567, State.FAILED: 7}
LONG = "notifications-of-the-whole-shop-1"
SEEN = [QueueFigures(LONG, COUNTS, None, False), QueueFigures("emails", COUNTS, None, True)]


def drawn(what: RenderableType, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(what)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("live", [False, True])
def test_no_number_is_cut_and_the_names_can_be_read(width: int, live: bool) -> None:
    watched = [topview.Watched(one, 1234.0, 999.0, 0.5, 12) for one in SEEN]
    for what in (queueview.table(SEEN), topview.frame(watched, title="a store" if live else "")):
        lines = drawn(what, width)
        rows = [line.split() for line in lines[-2:]]
        assert max(map(len, lines)) <= width
        assert rows[0][0][:19] == LONG[:19], lines
        assert rows[1][0] == "emails"
        assert "paused" in rows[1]
        assert "3,000" in rows[0]
        allowed = {"3,000", "12", "50", "1,234,567", "7", "1,234", "999", "0.5"}
        assert set(rows[0][1:]) <= allowed, lines
    if width == 200:
        assert "1,234,567" in rows[0]
