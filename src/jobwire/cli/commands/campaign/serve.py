"""`jobwire campaign serve`: the HTTP API."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Annotated

import typer

URL_VARIABLE = "JOBWIRE_CAMPAIGN_URL"

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help=f"The database, such as postgresql://localhost/app. Without it: {URL_VARIABLE}.",
        show_default=False,
    ),
]


def serve(
    *,
    url: Url = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="The port; 0 takes a free one.")] = 8000,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file with a table for each token. Without it: JOBWIRE_CAMPAIGN_TOKENS.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The schema of the campaign tables. Without it: the URL's ?schema=, else public.",
            show_default=False,
        ),
    ] = None,
    queue_schema: Annotated[str, typer.Option(metavar="NAME", help="The schema of pg-boss's tables.")] = "pgboss",
) -> None:
    """Serve the HTTP API of campaigns. Its page is at /docs. Beyond loopback it needs tokens."""
    from jobwire.campaigns.api.serve import VARIABLE
    from jobwire.campaigns.api.serve import serve as serve_api
    from jobwire.campaigns.service import CampaignService
    from jobwire.cli.output import remark
    from jobwire.errors import InvalidOption
    from jobwire.serving.tokens import Tokens

    address = url if url is not None else os.environ.get(URL_VARIABLE)
    if not address:
        raise InvalidOption("url", address, f"is missing: give --url, or set {URL_VARIABLE}")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S")
    known = Tokens.from_file(tokens) if tokens is not None else Tokens.from_environment(os.environ, VARIABLE)
    if tokens is not None and not len(known):
        raise InvalidOption("tokens", str(tokens), "has no tokens")

    def ready(where: str) -> None:
        remark(f"campaigns are served at {where}, with a page at {where}/docs")
        if not len(known):
            remark("without tokens, every program of this machine can run campaigns")

    asyncio.run(
        serve_api(
            CampaignService(address, schema=schema, queue_schema=queue_schema),
            host=host,
            port=port,
            tokens=known if len(known) else None,
            on_ready=ready,
        )
    )
