"""Serves the API by itself, with uvicorn. `jobwire.serving.server` has the rules for who may use it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from jobwire.campaigns.api.app import campaign_api
from jobwire.campaigns.service import CampaignService
from jobwire.serving import server
from jobwire.serving.listening import listen
from jobwire.serving.tokens import Tokens

VARIABLE = "JOBWIRE_CAMPAIGN_TOKENS"
"""The environment variable with the tokens: NAME:ROLE:TOKEN, several separated by spaces."""


async def serve(
    service: CampaignService,
    *,
    host: str,
    port: int,
    tokens: Tokens | None,
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serves until it is stopped by SIGINT or SIGTERM. Calls `on_ready` with the URL once connections are taken.

    Refuses an address beyond loopback if there are no tokens."""
    open_to_all = tokens is None
    with closing(listen(host, port, open_to_all=open_to_all, variable=VARIABLE)) as listening:
        async with service:
            app = campaign_api(service, tokens=tokens)
            await server.serve(app, listening, open_to_all=open_to_all, on_ready=on_ready)
