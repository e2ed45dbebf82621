"""The displays of `jobwire campaign watch`: a progress bar in a terminal, a line for each change elsewhere."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jobwire.campaigns import Campaign, CampaignStatus, Speed
from jobwire.campaigns.states import OPEN
from jobwire.cli.commands.campaign.views import counts, lasting, one_line, per_minute, record, state, waits
from jobwire.cli.output import console, emit, remark

NO_WORKER = "no message was sent for a while: is jobwire campaign worker running?"
_BAR = 40


class Board:
    """Draws the campaign in place. A context manager."""

    every = 0.25

    def __init__(self) -> None:
        self._live = Live(console=console(), auto_refresh=False)

    def __enter__(self) -> Board:
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, campaign: Campaign, speed: Speed) -> None:
        self._live.update(draw(campaign, speed, self._live.console), refresh=True)

    def trouble(self, text: str) -> None:
        """Shows that the database does not answer, until the next campaign is shown."""
        self._live.update(Text(one_line(text, 500), style="yellow"), refresh=True)


class Lines:
    """Prints a line when something has changed. A context manager."""

    every = 1.0

    def __init__(self) -> None:
        self._last = ""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *error: object) -> None: ...

    def show(self, campaign: Campaign, speed: Speed) -> None:
        if campaign.status not in OPEN:
            return  # the command prints the end
        changing = f"{campaign.status} {campaign.progress} %  {counts(campaign)}"
        note = waits(campaign) or (NO_WORKER if speed.stuck else "")
        line = "  ".join(filter(None, (changing, note)))
        if line == self._last:
            return
        self._last = line
        fast = "" if speed.stuck else _fast(campaign, speed)
        sys.stdout.write(
            "  ".join(filter(None, (f"{datetime.now(UTC).astimezone():%H:%M:%S}", changing, fast, note))) + "\n"
        )
        sys.stdout.flush()

    def trouble(self, text: str) -> None:
        if text != self._last:
            remark(one_line(text, 500))
        self._last = text


class JsonRows:
    """Prints the campaign as a line of JSON when it has changed. A context manager."""

    every = 1.0

    def __init__(self) -> None:
        self._last: Campaign | None = None

    def __enter__(self) -> JsonRows:
        return self

    def __exit__(self, *error: object) -> None: ...

    def show(self, campaign: Campaign, speed: Speed) -> None:
        if campaign != self._last:
            emit(record(campaign))
            sys.stdout.flush()
        self._last = campaign

    def trouble(self, text: str) -> None:
        remark(one_line(text, 500))


def draw(campaign: Campaign, speed: Speed, terminal: Console) -> RenderableType:
    """Returns the display: the name and state, a bar, the numbers, and a note if something is to be done."""
    head = Text.assemble(
        (one_line(campaign.name, 50), "bold"), "  ", state(campaign.status), (f"  {campaign.mode}", "dim")
    )
    row = Table.grid(padding=(0, 1))
    done, total = campaign.sent + campaign.failed, campaign.total_jobs
    bar = ProgressBar(total=max(total, 1), completed=done if total else 0, width=max(min(_BAR, terminal.width - 30), 5))
    row.add_row(bar, f"{campaign.progress:3} %", Text(f"{done:,} of {total:,}" if total else "", style="dim"))
    numbers = Text.assemble(
        (f"{campaign.sent:,} sent", "green" if campaign.sent else "dim"),
        " · ",
        (f"{campaign.failed:,} failed", "red" if campaign.failed else "dim"),
        f" · {_fast(campaign, speed)}" if campaign.status in OPEN else "",
    )
    note = waits(campaign) or (NO_WORKER if speed.stuck else "")
    if campaign.status is CampaignStatus.QUEUED:
        note = "not started: jobwire campaign start"
    return Group(head, row, numbers, *([Text(note, style="yellow")] if note else []))


def _fast(campaign: Campaign, speed: Speed) -> str:
    asked = per_minute(campaign.delivery_rate)
    if speed.per_minute is None:
        return f"asked {asked}"
    left = f", {lasting(max(round(speed.left), 1))} left" if speed.left is not None else ""
    return f"{per_minute(speed.per_minute)}, asked {asked}{left}"
