"""Actions on campaigns: a page that shows what will be done, where that can't be undone, then the deed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from jobwire.campaigns.states import CampaignStatus, IllegalTransition
from jobwire.counted import counted
from jobwire.dashboard.actions import record
from jobwire.dashboard.board import Call
from jobwire.dashboard.campaign_acts import CAMPAIGN_ACTS, CampaignAct
from jobwire.dashboard.links import link
from jobwire.dashboard.pages.act import Fields, check_role, one_of
from jobwire.dashboard.pages.campaign import found
from jobwire.dashboard.pages.campaigns import Row
from jobwire.dashboard.render import View, page
from jobwire.look.words import spoken
from jobwire.serving.tokens import Role

if TYPE_CHECKING:
    from jobwire.campaigns import Campaign
    from jobwire.dashboard.campaigns import CampaignsDatabase

PREVIEWS = 3


async def preview(call: Call, fields: Fields) -> Response:
    """Shows the campaign that an action would change, and for a start also the first messages."""
    act, database, campaign = await _chosen(call, fields)
    starts = campaign.status is CampaignStatus.QUEUED and act.verb == "start"
    messages = await database.ask(lambda: database.service.preview(campaign.id, limit=PREVIEWS)) if starts else []
    channels, batch = None, campaign.batch_id
    if starts and batch:
        channels = (await database.ask(lambda: database.service.count_channels(batch))).active
    row = Row(campaign, None)
    view = View(
        "campaign_preview.html",
        f"{act.verb.capitalize()} {campaign.name}?",
        {
            "database": database,
            "campaign": campaign,
            "row": row,
            "act": act,
            "messages": messages,
            "sentence": _sentence(act, row, channels),
        },
    )
    return page(view, call)


async def act(call: Call, fields: Fields) -> Response:
    """Does it to the campaign that the form names."""
    act, database, campaign = await _chosen(call, fields)
    if act.needs_preview and one_of(fields, "confirmed") != "yes":
        raise HTTPException(400, f"To {act.verb} a campaign needs a confirmation.")
    where = f"store {database.name!r}, campaign {campaign.name!r} ({campaign.id})"
    ended = "failed on the way"
    try:
        await database.ask(lambda: act.run(database.service, campaign.id, call.caller))
        ended = "done"
    except IllegalTransition:
        ended = "refused"
        raise
    finally:
        record(call.caller, act.verb, where, ended)
    database.outdate()
    return RedirectResponse(link("campaign", store=database.name, id=campaign.id, did=act.verb), 303)


async def _chosen(call: Call, fields: Fields) -> tuple[CampaignAct, CampaignsDatabase, Campaign]:
    check_role(call, Role.OPERATOR)
    chosen = CAMPAIGN_ACTS.get(one_of(fields, "verb"))
    if chosen is None:
        raise HTTPException(400, "There is no such action.")
    database = call.database(one_of(fields, "store"))
    return chosen, database, await found(call, database, one_of(fields, "id"))


def _sentence(act: CampaignAct, row: Row, channels: int | None) -> str:
    """Returns what follows from the action, in figures."""
    one = row.campaign
    if channels is not None:
        lasting = spoken(channels * 60 / one.delivery_rate)
        real = "" if one.mode == "LIVE" else " It is in TEST mode, so they reach no channel."
        messages = counted(channels, "message")
        return f"{messages} to active channels, {one.delivery_rate:,} a minute: that takes {lasting}.{real}"
    if act.verb == "cancel" and one.total_jobs:
        return f"{counted(row.left, 'message', ' is', ' are')} not sent and never will be. This can't be undone."
    return act.effect
