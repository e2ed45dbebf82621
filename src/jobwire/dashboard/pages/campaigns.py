"""All campaigns: those that have not ended first, then the newest of the others; and the channels in trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from jobwire.campaigns.states import CampaignStatus
from jobwire.counted import counted
from jobwire.dashboard import campaign_troubles
from jobwire.dashboard.board import Call
from jobwire.dashboard.pages.outcome import campaign_said
from jobwire.dashboard.pictures import progress_bar
from jobwire.dashboard.render import View
from jobwire.look.words import ago, spoken

if TYPE_CHECKING:
    from jobwire.campaigns import Campaign, Speed
    from jobwire.dashboard.campaigns import CampaignsDatabase, CampaignsLook


@dataclass(frozen=True, slots=True)
class Row:
    """One campaign of a table."""

    campaign: Campaign
    speed: Speed | None

    @property
    def left(self) -> int:
        """Messages that are neither sent nor failed."""
        return max(0, self.campaign.total_jobs - self.campaign.sent - self.campaign.failed)

    @property
    def unfinished(self) -> bool:
        return self.campaign.status in (CampaignStatus.QUEUED, CampaignStatus.RUNNING, CampaignStatus.PAUSED)

    @property
    def under_way(self) -> bool:
        return self.campaign.status in (CampaignStatus.RUNNING, CampaignStatus.PAUSED)

    @property
    def held(self) -> float | None:
        """Messages per minute, as measured."""
        return self.speed.per_minute if self.speed is not None else None

    @property
    def remaining(self) -> str:
        """The time until the end at the present speed, or an empty text."""
        left = self.speed.left if self.speed is not None else None
        return spoken(max(1.0, left)) if left is not None and self.left else ""

    @property
    def bar(self) -> Markup:
        one = self.campaign
        words = f"{one.sent:,} sent, {one.failed:,} failed, {self.left:,} left"
        return progress_bar(one.sent, one.failed, one.total_jobs, words)

    @property
    def state(self) -> str:
        """The class of its state in the style sheet, which is that of jobs."""
        return _STATES[self.campaign.status]

    @property
    def words(self) -> str:
        """Its state in words."""
        one = self.campaign
        match one.status:
            case CampaignStatus.PAUSED if one.paused_until is not None:
                return f"waits for the transport's limit, goes on {ago(one.paused_until)}"
            case CampaignStatus.PAUSED if one.paused_reason:
                return f"paused: {one.paused_reason}"
            case CampaignStatus.QUEUED:
                return "not started"
            case CampaignStatus.RUNNING if self.speed is not None and self.speed.stuck:
                return "runs, sends nothing"
            case CampaignStatus.RUNNING:
                return "runs"
            case _:
                return one.status.lower()


_STATES = {
    CampaignStatus.QUEUED: "waiting",
    CampaignStatus.RUNNING: "active",
    CampaignStatus.PAUSED: "delayed",
    CampaignStatus.COMPLETED: "completed",
    CampaignStatus.FAILED: "failed",
    CampaignStatus.CANCELLED: "cancelled",
}
_ORDER = {CampaignStatus.RUNNING: 0, CampaignStatus.PAUSED: 1, CampaignStatus.QUEUED: 2}


def rows_of(look: CampaignsLook) -> list[Row]:
    """Returns a row for each campaign: those that run, paused ones, those not started, those that have ended."""
    rows = [Row(campaign, look.speeds.get(campaign.id)) for campaign in look.campaigns]
    return sorted(rows, key=lambda row: _ORDER.get(row.campaign.status, len(_ORDER)))


async def draw(call: Call) -> View:
    """Returns the campaigns of all databases, or of the one that the URL names."""
    databases = [call.database()] if call.given("store") else list(call.board.campaigns.values())
    looks = await asyncio.gather(*(database.fresh() for database in databases))
    sections = [(database, rows_of(look)) for database, look in zip(databases, looks, strict=True)]
    return View(
        "campaigns.html",
        _title([row for _, rows in sections for row in rows], databases),
        {
            "sections": sections,
            "troubles": [one for database in databases for one in campaign_troubles.of_database(database)],
            "said": campaign_said(call),
        },
    )


def _title(rows: Sequence[Row], databases: Sequence[CampaignsDatabase]) -> str:
    if not databases:
        return "No store has campaigns"
    running = [row for row in rows if row.campaign.status is CampaignStatus.RUNNING]
    if not running:
        paused = sum(row.campaign.status is CampaignStatus.PAUSED for row in rows)
        if paused:
            return f"No campaign runs, {paused} {'is' if paused == 1 else 'are'} paused"
        return "No campaign runs" if rows else "There are no campaigns"
    left = counted(sum(row.left for row in running), "message", " is", " are")
    who = running[0].campaign.name if len(running) == 1 else counted(len(running), "campaign")
    return f"{who} {'runs' if len(running) == 1 else 'run'}: {left} left"
