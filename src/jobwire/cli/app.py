"""The Typer application, with one module per command.

A command module imports only Typer and the standard library. It imports everything else when it runs, so that `jobwire
--help` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from jobwire import __version__
from jobwire.cli.commands.campaign import app as campaign
from jobwire.cli.commands.health import health
from jobwire.cli.commands.keda import keda
from jobwire.cli.commands.pgboss import app as pgboss
from jobwire.cli.commands.pipeline import app as pipeline
from jobwire.cli.commands.worker import worker
from jobwire.cli.demo.command import demo
from jobwire.cli.groups import Commands
from jobwire.cli.operators import register
from jobwire.cli.parameters import examples

TRY = "Try it"
WORK = "Work"
APPLICATIONS = "Applications"
DATA = "Data"
PROTOCOLS = "One protocol"


def build() -> Commands:
    """Returns the whole command line. Further groups of commands are added here, with `add_typer`."""
    app = Commands(
        name="jobwire",
        help="Share job queues with the systems that already run them: add jobs, look at them, work on them.",
        epilog=examples(
            "jobwire demo",
            """jobwire add emails '{"to": "a@example.com"}' --url bullmq+redis://host""",
            "jobwire worker shop.mail:handle --queue emails --concurrency 10",
        ),
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    app.command(rich_help_panel=TRY, epilog=examples("jobwire demo --seconds 30 --rate 1000"))(demo)
    register(app)
    app.command(
        rich_help_panel=WORK,
        epilog=examples(
            "jobwire worker shop.mail:handle --queue emails --concurrency 10",
            "jobwire worker shop.mail:worker --processes 4",
            "jobwire worker ./mail.py:handle --queue emails --reload",
        ),
    )(worker)
    app.command(rich_help_panel=WORK, epilog=examples("jobwire health", "jobwire health 9464 9465 --live"))(health)
    app.command(
        rich_help_panel=WORK,
        epilog=examples(
            "jobwire keda emails --store prod --max 20 --per-worker 10 > scaling.yaml",
            "jobwire keda emails --name mail-worker --min 0 | kubectl apply -f -",
        ),
    )(keda)
    app.add_typer(campaign, rich_help_panel=APPLICATIONS)
    app.add_typer(pipeline, rich_help_panel=DATA)
    app.add_typer(pgboss, rich_help_panel=PROTOCOLS)
    return app


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"jobwire {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None: ...


app = build()
