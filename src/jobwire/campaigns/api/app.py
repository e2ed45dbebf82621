"""Puts the API together."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Security
from fastapi.security import HTTPBearer

from jobwire import checks
from jobwire._version import __version__
from jobwire.campaigns.api.body_limit import UPLOAD_LIMIT, BodyLimit
from jobwire.campaigns.api.errors import add_handlers
from jobwire.campaigns.api.responses import Failed
from jobwire.campaigns.api.routes import campaigns, channels, templates
from jobwire.campaigns.api.service_of_app import OpenedService
from jobwire.campaigns.service import CampaignService
from jobwire.errors import InvalidOption
from jobwire.serving.tokens import Tokens

_DESCRIPTION = """Sends one template to many channels, at a held rate.

A request needs a bearer token: `Authorization: Bearer …`. The role that a request needs is its `x-role`: a `viewer`
reads, an `operator` also runs campaigns, an `admin` also changes channels and templates.

Campaigns, batches, templates and channels are given by id or by name. Lists come in pages: `next` of a page is the
`after` of the following one. An error is `{"error": …}`, with `field`, `value` and `rule` if a value is the cause.
"""
_ERRORS: dict[int | str, dict[str, Any]] = {
    401: {"model": Failed, "description": "The token is missing or unknown."},
    403: {"model": Failed, "description": "The token's role does not allow this."},
    404: {"model": Failed, "description": "There is no such row. The error suggests a similar name."},
    409: {"model": Failed, "description": "The state does not allow this, or several rows have the name."},
    413: {"model": Failed, "description": "The body is too large."},
    422: {"model": Failed, "description": "A value breaks a rule. Nothing was changed."},
    503: {"model": Failed, "description": "The database is unavailable. Try again after `Retry-After` seconds."},
}


def campaign_api(
    service: CampaignService | str,
    *,
    tokens: Tokens | None,
    upload_limit: int = UPLOAD_LIMIT,
) -> FastAPI:
    """Returns the API as an ASGI application, to be served by itself or mounted in another.

    `service` is a service that the caller opens and closes, or the URL of a database, perhaps with `?schema=`.
    With `tokens=None` every caller is an admin: only behind a check of your own. `upload_limit` is the largest file of
    channels, in bytes.
    """
    checks.whole("upload_limit", upload_limit, minimum=1)
    given: Any = tokens
    if given is not None and not isinstance(given, Tokens):
        raise InvalidOption("tokens", type(given).__name__, "must be Tokens, or None for an API without tokens")
    if tokens is not None and not len(tokens):
        raise InvalidOption("tokens", tokens, "must have at least one token")
    owned = isinstance(service, str)
    opened = OpenedService(CampaignService(service) if isinstance(service, str) else service, owned=owned)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await opened.close()

    app = FastAPI(title="Campaigns", version=__version__, description=_DESCRIPTION, lifespan=lifespan)
    app.state.tokens = tokens
    app.state.opened = opened
    app.add_middleware(BodyLimit, upload_limit=upload_limit)
    add_handlers(app)
    # The token is checked by the route. This names it in the OpenAPI document.
    described = [Security(HTTPBearer(auto_error=False))]
    for router in (campaigns.router, channels.router, templates.router):
        app.include_router(router, dependencies=described, responses=_ERRORS)
    return app
