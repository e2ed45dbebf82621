"""Campaigns: creating, running and reading them."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from jobwire.campaigns.api.guard import OPERATOR, VIEWER, GuardedRoute, caller_of
from jobwire.campaigns.api.requests import (
    MOST_PREVIEWS,
    CampaignKey,
    NewCampaign,
    NewRate,
    Paged,
    PagedCampaigns,
    Pause,
    Previewed,
    checked_limit,
)
from jobwire.campaigns.api.responses import CampaignShown, DeliveryShown, Page, PreviewShown, ReportShown
from jobwire.campaigns.api.service_of_app import Service

router = APIRouter(prefix="/campaigns", tags=["campaigns"], route_class=GuardedRoute)


@router.get("", openapi_extra=VIEWER)
async def list_campaigns(service: Service, query: PagedCampaigns) -> Page[CampaignShown]:
    """Returns a page of campaigns, in the order of their creation."""
    limit = query.checked_limit()
    rows = await service.campaigns(status=query.checked_status(), limit=limit + 1, after=query.after)
    return Page[CampaignShown].of(rows, limit, CampaignShown, lambda row: row.id)


@router.post("", status_code=201, openapi_extra=OPERATOR)
async def create_campaign(service: Service, new: NewCampaign, request: Request, response: Response) -> CampaignShown:
    """Creates a campaign, which is QUEUED until it is started. A missing or unknown parameter of the template and a
    message that would be too long are refused."""
    made = await service.create(**new.model_dump())
    response.headers["Location"] = request.url_for("show_campaign", campaign=made.id).path
    return CampaignShown.of(made)


@router.get("/{campaign}", openapi_extra=VIEWER)
async def show_campaign(service: Service, campaign: CampaignKey) -> CampaignShown:
    """Returns a campaign with its state and counters."""
    return CampaignShown.of(await service.status(campaign))


@router.get("/{campaign}/report", openapi_extra=VIEWER)
async def report_campaign(service: Service, campaign: CampaignKey) -> ReportShown:
    """Returns what became of the campaign's messages: counts, failures by reason, rates."""
    return ReportShown.of(await service.report(campaign))


@router.get("/{campaign}/deliveries", openapi_extra=VIEWER)
async def list_deliveries(service: Service, campaign: CampaignKey, query: Paged) -> Page[DeliveryShown]:
    """Returns a page of the campaign's messages: who got it, who did not, and why."""
    limit = query.checked_limit()
    rows = await service.deliveries(campaign, limit=limit + 1, after=query.after)
    return Page[DeliveryShown].of(rows, limit, DeliveryShown, lambda row: row.job_id)


@router.get("/{campaign}/preview", openapi_extra=VIEWER)
async def preview_campaign(service: Service, campaign: CampaignKey, query: Previewed) -> list[PreviewShown]:
    """Returns the messages that the first channels would receive. Nothing is sent."""
    limit = checked_limit(query.limit, MOST_PREVIEWS)
    return [PreviewShown.of(one) for one in await service.preview(campaign, limit=limit)]


@router.post("/{campaign}/start", openapi_extra=OPERATOR)
async def start_campaign(service: Service, campaign: CampaignKey, request: Request) -> CampaignShown:
    """QUEUED becomes RUNNING, and the workers begin to send. Of several requests, one succeeds: the others get 409."""
    return CampaignShown.of(await service.start(campaign, user=caller_of(request).name))


@router.post("/{campaign}/pause", openapi_extra=OPERATOR)
async def pause_campaign(service: Service, campaign: CampaignKey, pause: Pause | None = None) -> CampaignShown:
    """RUNNING becomes PAUSED until it is resumed. Messages that are being sent at this moment are still sent."""
    return CampaignShown.of(await service.pause(campaign, reason=pause and pause.reason))


@router.post("/{campaign}/resume", openapi_extra=OPERATOR)
async def resume_campaign(service: Service, campaign: CampaignKey) -> CampaignShown:
    """PAUSED becomes RUNNING."""
    return CampaignShown.of(await service.resume(campaign))


@router.post("/{campaign}/cancel", openapi_extra=OPERATOR)
async def cancel_campaign(service: Service, campaign: CampaignKey) -> CampaignShown:
    """Ends a campaign for good. Messages that are not sent yet never are."""
    return CampaignShown.of(await service.cancel(campaign))


@router.put("/{campaign}/rate", openapi_extra=OPERATOR)
async def set_rate(service: Service, campaign: CampaignKey, new: NewRate) -> CampaignShown:
    """Changes the delivery rate of a campaign that has not ended."""
    return CampaignShown.of(await service.set_rate(campaign, new.rate))
