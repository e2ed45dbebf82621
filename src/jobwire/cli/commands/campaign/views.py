"""Campaigns as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from jobwire.campaigns import Campaign, CampaignStatus
from jobwire.cli.output import printable

_STYLES = {
    CampaignStatus.QUEUED: "dim",
    CampaignStatus.RUNNING: "cyan",
    CampaignStatus.PAUSED: "yellow",
    CampaignStatus.COMPLETED: "green",
    CampaignStatus.FAILED: "red",
    CampaignStatus.CANCELLED: "dim",
}
NO_CHANNEL = "TEST: nothing reaches a real channel"
_LONGEST = 40


def record(row: Any) -> dict[str, Any]:
    """Returns a row as JSON has it: times as text."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(row).items()
    }  # fmt: skip


def columns(*headings: str, right: tuple[str, ...] = ()) -> Table:
    """Returns an empty table. Its texts are shortened if the terminal is narrow."""
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", no_wrap=True, overflow="ellipsis")
    return table


def state(status: CampaignStatus) -> Text:
    """Returns the state in its colour."""
    return Text(status.value, style=_STYLES[status])


def quoted(name: str) -> str:
    """Returns a name for a sentence, with its control characters escaped."""
    return f"'{printable(name)}'"


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Returns the beginning of a text on one line.

    >>> one_line("Hello\\nworld"), one_line("Hello world", 8)
    ('Hello⏎world', 'Hello w…')
    """
    shown = printable(text.replace("\r\n", "\n").replace("\n", "⏎"))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def counts(campaign: Campaign) -> str:
    """Returns the counters: `418 sent, 2 failed of 1,000`. The messages are counted when the first worker sees the
    campaign."""
    if not was_started(campaign):
        return "not started"
    if not campaign.total_jobs and campaign.status in (CampaignStatus.RUNNING, CampaignStatus.PAUSED):
        return "its messages are not counted yet"
    return f"{campaign.sent:,} sent, {campaign.failed:,} failed of {campaign.total_jobs:,}"


def was_started(campaign: Campaign) -> bool:
    """Returns False for a campaign that waits for its start, or has ended without one. When an adopted campaign was
    started may be unknown."""
    begun = (CampaignStatus.RUNNING, CampaignStatus.PAUSED, CampaignStatus.COMPLETED)
    return campaign.started_at is not None or campaign.total_jobs > 0 or campaign.status in begun


def waits(campaign: Campaign) -> str:
    """Returns why a campaign does not go on: its pause or its error. Empty if there is nothing to name."""
    if campaign.error:
        return one_line(campaign.error, 300)
    if campaign.status is not CampaignStatus.PAUSED:
        return ""
    reason = f" ({one_line(campaign.paused_reason, 200)})" if campaign.paused_reason else ""
    if campaign.paused_until is None:
        return f"paused until it is resumed{reason}"
    return f"paused until {moment(campaign.paused_until)}{reason}, then it goes on by itself"


def moment(time: datetime | None) -> str:
    """Returns a time in the local zone, without the date if it is today."""
    if time is None:
        return ""
    local = time.astimezone()
    same_day = local.date() == datetime.now(UTC).astimezone().date()
    return local.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S")


def lasting(seconds: float) -> str:
    """Returns a duration.

    >>> lasting(0.42), lasting(58), lasting(3723), lasting(200_000)
    ('0.4 s', '58 s', '1:02:03', '2 d 7 h')
    """
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole >= 86_400:
        return f"{whole // 86_400} d {whole % 86_400 // 3600} h"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02} min"


def per_minute(rate: float) -> str:
    """Returns a rate.

    >>> per_minute(598.4), per_minute(7.25), per_minute(0)
    ('598/min', '7.2/min', '0/min')
    """
    return f"{rate:,.0f}/min" if rate >= 10 or not rate else f"{rate:.1f}/min"
