"""Channels and batches."""

from __future__ import annotations

from fastapi import APIRouter, Request

from jobwire.campaigns.api.guard import ADMIN, VIEWER, GuardedRoute
from jobwire.campaigns.api.requests import ChannelKey, Imported, Paged, PagedChannels
from jobwire.campaigns.api.responses import BatchShown, ChannelShown, ImportShown, Page
from jobwire.campaigns.api.service_of_app import Service
from jobwire.campaigns.api.upload import uploaded

router = APIRouter(tags=["channels"], route_class=GuardedRoute)

_CSV = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {
                "schema": {"type": "string", "format": "binary"},
                "example": "username,category\n@news,tea\nhttps://t.me/other,\n",
            }
        },
    }
}


@router.get("/channels", openapi_extra=VIEWER)
async def list_channels(service: Service, query: PagedChannels) -> Page[ChannelShown]:
    """Returns a page of channels: all, those of a batch, or by their state."""
    limit = query.checked_limit()
    rows = await service.channels(batch=query.batch, active=query.active, limit=limit + 1, after=query.after)
    return Page[ChannelShown].of(rows, limit, ChannelShown, lambda row: row.id)


@router.post("/channels/import", openapi_extra=ADMIN | _CSV)
async def import_channels(service: Service, query: Imported, request: Request) -> ImportShown:
    """Imports a CSV file of channels, sent as the body: UTF-8 with a header, `username` or `username,category`. A bad
    line refuses the whole file, unless `skip_bad` is true."""
    async with uploaded(request) as file:
        return ImportShown.of(await service.import_channels(file, batch=query.batch, skip_bad=query.skip_bad))


@router.post("/channels/{channel}/activate", openapi_extra=ADMIN)
async def activate_channel(service: Service, channel: ChannelKey) -> ChannelShown:
    """Makes a channel active again, with no errors."""
    return ChannelShown.of(await service.activate_channel(channel))


@router.get("/batches", openapi_extra=VIEWER)
async def list_batches(service: Service, query: Paged) -> Page[BatchShown]:
    """Returns a page of batches."""
    limit = query.checked_limit()
    rows = await service.batches(limit=limit + 1, after=query.after)
    return Page[BatchShown].of(rows, limit, BatchShown, lambda row: row.id)
