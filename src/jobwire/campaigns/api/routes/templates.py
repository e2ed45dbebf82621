"""Templates."""

from __future__ import annotations

from fastapi import APIRouter

from jobwire.campaigns.api.guard import ADMIN, VIEWER, GuardedRoute
from jobwire.campaigns.api.requests import NewTemplate, Paged
from jobwire.campaigns.api.responses import Page, TemplateShown
from jobwire.campaigns.api.service_of_app import Service

router = APIRouter(prefix="/templates", tags=["templates"], route_class=GuardedRoute)


@router.get("", openapi_extra=VIEWER)
async def list_templates(service: Service, query: Paged) -> Page[TemplateShown]:
    """Returns a page of templates."""
    limit = query.checked_limit()
    rows = await service.templates(limit=limit + 1, after=query.after)
    return Page[TemplateShown].of(rows, limit, TemplateShown, lambda row: row.id)


@router.post("", status_code=201, openapi_extra=ADMIN)
async def add_template(service: Service, new: NewTemplate) -> TemplateShown:
    """Adds a template. Unmatched braces, a media type without a URL and a text beyond Telegram's limit are refused."""
    return TemplateShown.of(await service.add_template(**new.model_dump()))
