"""`jobwire dashboard`: all queues of all stores, in a browser."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.durations import duration
from jobwire.cli.parameters import STORE

if TYPE_CHECKING:
    from jobwire.dashboard.callers import Auth

VARIABLE = "JOBWIRE_DASHBOARD_TOKENS"
ACCESS = "Who may use it"


def dashboard(
    *,
    store: Annotated[
        list[str] | None,
        typer.Option(
            "--store",
            metavar="NAME",
            help="A store's name in jobwire.toml, or in pyproject.toml. May be repeated. Without it: all of them.",
            show_default=False,
            rich_help_panel=STORE,
        ),
    ] = None,
    url: Annotated[
        list[str] | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="A store's URL, such as bullmq+redis://host:6379/0, or that of a campaigns' database, "
            "postgresql://host/app. May be repeated.",
            show_default=False,
            rich_help_panel=STORE,
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="The port; 0 takes a free one.")] = 8020,
    allow_actions: Annotated[
        bool,
        typer.Option(
            "--allow-actions", metavar="", help="Let operators act on jobs and queues.", rich_help_panel=ACCESS
        ),
    ] = False,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"A TOML file with a table for each token: role and token. Without it: {VARIABLE}.",
            show_default=False,
            rich_help_panel=ACCESS,
        ),
    ] = None,
    user_header: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Trust this header of a proxy for the user's name, instead of tokens.",
            show_default=False,
            rich_help_panel=ACCESS,
        ),
    ] = None,
    user_role: Annotated[
        str,
        typer.Option(
            metavar="ROLE", help="The role of users by --user-header: viewer, operator, admin.", rich_help_panel=ACCESS
        ),
    ] = "viewer",
    redact: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Hide the values of fields whose names match, beside passwords, tokens and the like. May be repeated.",
            show_default=False,
        ),
    ] = None,
    lake: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Show the history from this lake of the pipeline, without Spark.", show_default=False
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(metavar="DURATION", parser=duration, help="Time in which a store must answer.", show_default="3s"),
    ] = 3.0,
) -> None:
    """Serve the dashboard. It only reads, unless actions are allowed. Beyond loopback it needs tokens."""
    from contextlib import closing

    from jobwire import dashboard as package
    from jobwire.cli.dashboard_stores import chosen_stores
    from jobwire.cli.output import remark
    from jobwire.serving.listening import listen
    from jobwire.serving.server import serve

    auth = _auth(tokens, user_header, user_role)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s", datefmt="%Y-%m-%d %H:%M:%S"
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    app = package.dashboard(
        chosen_stores(store or (), url or ()),
        allow_actions=allow_actions,
        auth=auth,
        redact=redact or (),
        timeout=timeout,
        lake=lake,
    )

    def ready(where: str) -> None:
        remark(f"the dashboard is served at {where}/")
        if allow_actions and auth is None:
            remark("without tokens, every program of this machine can act on jobs")

    open_to_all = auth is None
    with closing(listen(host, port, open_to_all=open_to_all, variable=VARIABLE)) as listening:
        asyncio.run(serve(app, listening, open_to_all=open_to_all, on_ready=ready, on_stop=app.state.board.stop))


def _auth(tokens: Path | None, header: str | None, role: str) -> Auth:
    from jobwire.cli.exit_codes import WrongUsage
    from jobwire.dashboard import Tokens, TrustedHeader
    from jobwire.errors import InvalidOption

    if tokens is not None and header is not None:
        raise WrongUsage("give either --tokens or --user-header, not both")
    if header is not None:
        return TrustedHeader(header, role)
    known = Tokens.from_file(tokens) if tokens is not None else Tokens.from_environment(os.environ, VARIABLE)
    if tokens is not None and not len(known):
        raise InvalidOption("tokens", str(tokens), "has no tokens")
    return known if len(known) else None
