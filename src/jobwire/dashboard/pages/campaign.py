"""One campaign: how far it has come, how fast it goes, why messages fail, and what can be done about it."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from markupsafe import Markup
from starlette.exceptions import HTTPException

from jobwire.campaigns.errors import NotFound
from jobwire.campaigns.states import CampaignStatus
from jobwire.counted import counted
from jobwire.dashboard import campaign_troubles
from jobwire.dashboard.board import Call
from jobwire.dashboard.campaign_acts import CAMPAIGN_ACTS, CampaignAct
from jobwire.dashboard.pages.campaigns import Row
from jobwire.dashboard.pages.outcome import campaign_said
from jobwire.dashboard.pictures import sparkline
from jobwire.dashboard.render import View
from jobwire.dashboard.series import Bin, Series, minutes_of
from jobwire.serving.tokens import Role

if TYPE_CHECKING:
    from jobwire.campaigns import Campaign, Speed
    from jobwire.dashboard.campaigns import CampaignsDatabase

MOST_FAILURES = 10_000
"""Failed messages that are counted by reason."""
_ALREADY_SEEN = 4
"""The weight of a trouble that the state of the campaign states too."""
_UNTIL = {
    CampaignStatus.QUEUED: "is not started",
    CampaignStatus.COMPLETED: "is completed",
    CampaignStatus.CANCELLED: "is cancelled",
    CampaignStatus.PAUSED: "is paused",
}


async def draw(call: Call) -> View:
    database = call.database()
    look = await database.fresh()
    campaign = await found(call, database, call.given("id"))
    row = Row(campaign, look.speeds.get(campaign.id))
    reasons, health = await asyncio.gather(
        database.ask(lambda: database.service.failure_reasons(campaign.id, most=MOST_FAILURES)),
        database.ask(lambda: database.service.channel_health(batch=campaign.batch_id))
        if campaign.batch_id
        else _nothing(),
    )
    bins = database.series.get(campaign.id, Series()).last_hour(look.at)
    return View(
        "campaign.html",
        _title(row),
        {
            "database": database,
            "campaign": campaign,
            "row": row,
            "troubles": [
                replace(one, href="")
                for one in campaign_troubles.of_campaign(database.name, campaign, row.speed)
                if one.weight < _ALREADY_SEEN
            ],
            "reasons": reasons,
            "counted_all": sum(one.count for one in reasons) < MOST_FAILURES,
            "health": health,
            "charts": _charts(bins[1:-1] or bins),
            "period": _period(bins),
            "acts": acts_on(call, campaign),
            "commands": [command(verb, database, campaign) for verb in _verbs(campaign)],
            "said": campaign_said(call),
        },
    )


def _charts(bins: Sequence[Bin]) -> list[tuple[str, Markup]]:
    """Returns the last hour of a campaign, or nothing if none of its messages was settled in it."""
    if not any(one.completed or one.failed for one in bins):
        return []
    return [
        ("Sent", sparkline(bins, lambda one: one.completed, "Messages sent over the last hour", "good")),
        ("Failed", sparkline(bins, lambda one: one.failed, "Messages failed over the last hour", "bad")),
    ]


def _period(bins: Sequence[Bin]) -> str:
    """Returns the time that the charts show."""
    minutes = minutes_of(bins)
    return (
        "in the last hour" if minutes >= 59 else f"in the last {max(1, round(minutes))} min, since the dashboard looks"
    )


async def _nothing() -> None:
    return None


async def found(call: Call, database: CampaignsDatabase, key: str) -> Campaign:
    """Returns the campaign of an id. Raises HTTPException 404."""
    if not key:
        raise HTTPException(404, "The address names no campaign.")
    try:
        return await database.ask(lambda: database.service.status(key))
    except NotFound:
        raise HTTPException(404, f"{database.name} has no campaign {key!r}.") from None


def acts_on(call: Call, campaign: Campaign) -> list[CampaignAct]:
    """Returns what the caller may do to a campaign."""
    if not call.may(Role.OPERATOR):
        return []
    return [act for act in CAMPAIGN_ACTS.values() if campaign.status in act.states]


def command(verb: str, database: CampaignsDatabase, campaign: Campaign) -> str:
    """Returns the same action as a command line."""
    settings = database.service.settings
    words = ["jobwire", "campaign", verb, campaign.name, "--url", database.where]
    words += ["--schema", settings.schema] if settings.schema != "public" else []
    return " ".join(shlex.quote(word) for word in words)


def _verbs(campaign: Campaign) -> list[str]:
    possible = [act.verb for act in CAMPAIGN_ACTS.values() if campaign.status in act.states]
    return ["watch", *possible] if possible else ["report"]


def _title(row: Row) -> str:
    one, speed = row.campaign, row.speed
    done = f"{one.progress}% done" if one.total_jobs else ""
    failed = f", {counted(one.failed, 'message')} failed" if one.failed else ""
    if one.status is CampaignStatus.RUNNING:
        rest = f", {row.remaining} left" if row.remaining else ""
        return f"{one.name} {_pace(speed)}: {done or 'its messages are being prepared'}{rest}{failed}"
    if one.status is CampaignStatus.FAILED:
        return f"{one.name} failed"
    state = _UNTIL[one.status]
    if one.status is CampaignStatus.COMPLETED:
        return f"{one.name} {state}: {counted(one.sent, 'message')} sent{failed}"
    return f"{one.name} {state}" + (f": {done}{failed}" if done else "")


def _pace(speed: Speed | None) -> str:
    if speed is not None and speed.stuck:
        return "runs, but sends nothing"
    return "runs"
