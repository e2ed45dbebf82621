"""Sentences about campaigns that need attention."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jobwire.campaigns.states import CampaignStatus
from jobwire.counted import counted
from jobwire.dashboard.links import link
from jobwire.dashboard.troubles import MANY_FAIL, Trouble
from jobwire.look.words import ago, spoken
from jobwire.redact import redact

if TYPE_CHECKING:
    from jobwire.campaigns import Campaign, Speed
    from jobwire.dashboard.campaigns import CampaignsDatabase

_FEWEST = 10
"""Settled messages from which on a share of failures is worth a sentence."""
_RECENT = timedelta(days=1)


def of_database(database: CampaignsDatabase) -> Iterator[Trouble]:
    """Yields what is wrong with the campaigns of a database."""
    look = database.look
    if look.trouble is not None:
        age = f"; their figures are {spoken(database.stale_for or 0)} old" if look.at else ""
        yield Trouble(0, f"The campaigns of {database.name} can't be read{age}", "", "", look.trouble)
    for campaign in look.campaigns:
        yield from of_campaign(database.name, campaign, look.speeds.get(campaign.id))


def of_campaign(store: str, campaign: Campaign, speed: Speed | None) -> Iterator[Trouble]:
    """Yields what is wrong with one campaign. It is named in each sentence."""
    name, page = f"Campaign {campaign.name}", link("campaign", store=store, id=campaign.id)
    settled = campaign.sent + campaign.failed
    match campaign.status:
        case CampaignStatus.RUNNING if speed is not None and speed.stuck:
            left = counted(campaign.total_jobs - settled, "message", " is", " are")
            state = f"{left} left" if campaign.total_jobs else "its messages are not prepared yet"
            detail = "Is a worker running? jobwire campaign worker"
            yield Trouble(1, f"{name} runs and sends nothing: {state}", page, "look", detail)
        case CampaignStatus.PAUSED if campaign.paused_until is not None:
            yield Trouble(
                4, f"{name} waits for the transport's limit, it goes on {ago(campaign.paused_until)}", page, "look"
            )
        case CampaignStatus.FAILED if _recent(campaign):
            yield Trouble(2, f"{name} failed", page, "look", redact(campaign.error or ""))
        case _:
            pass
    if campaign.status in (CampaignStatus.RUNNING, CampaignStatus.PAUSED) and settled >= _FEWEST:
        share = campaign.failed / settled
        if share >= MANY_FAIL:
            yield Trouble(2, f"{name}: {share:.0%} of {counted(settled, 'message')} failed", page, "reasons")


def _recent(campaign: Campaign) -> bool:
    at = campaign.completed_at or campaign.updated_at
    return at is not None and datetime.now(UTC) - at < _RECENT
