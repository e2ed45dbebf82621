"""Actions on campaigns, and the states in which each is possible. All are an operator's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobwire.campaigns.states import CampaignStatus
from jobwire.serving.tokens import Caller

if TYPE_CHECKING:
    from jobwire.campaigns import Campaign, CampaignService


@dataclass(frozen=True, slots=True)
class CampaignAct:
    """Something that can be done to a campaign of some states."""

    verb: str
    past: str
    states: tuple[CampaignStatus, ...]
    run: Callable[[CampaignService, str, Caller], Awaitable[Campaign]]
    effect: str
    needs_preview: bool = False
    """True if it can't be undone: messages are sent, or never will be."""


CAMPAIGN_ACTS = {
    act.verb: act
    for act in (
        CampaignAct(
            "start",
            "started",
            (CampaignStatus.QUEUED,),
            lambda campaigns, key, caller: campaigns.start(key, user=caller.name),
            "Workers begin to send.",
            needs_preview=True,
        ),
        CampaignAct(
            "pause",
            "paused",
            (CampaignStatus.RUNNING,),
            lambda campaigns, key, caller: campaigns.pause(
                key, reason=f"by {caller.name}, in the dashboard" if caller.name else "in the dashboard"
            ),
            "Messages that are being sent at this moment are still sent.",
        ),
        CampaignAct(
            "resume",
            "resumed",
            (CampaignStatus.PAUSED,),
            lambda campaigns, key, _: campaigns.resume(key),
            "Workers go on sending.",
        ),
        CampaignAct(
            "cancel",
            "cancelled",
            (CampaignStatus.QUEUED, CampaignStatus.RUNNING, CampaignStatus.PAUSED),
            lambda campaigns, key, _: campaigns.cancel(key),
            "Messages that are not sent yet never are.",
            needs_preview=True,
        ),
    )
}
