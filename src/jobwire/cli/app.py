"""The Typer application, with one module per command.

A command module imports only Typer and the standard library. It imports everything else when it runs, so that `jobwire
--help` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from jobwire import __version__
from jobwire.cli.commands.add import add
from jobwire.cli.commands.counts import counts
from jobwire.cli.commands.job import job
from jobwire.cli.commands.jobs import jobs
from jobwire.cli.commands.pgboss import app as pgboss
from jobwire.cli.commands.pipeline import app as pipeline
from jobwire.cli.commands.worker import worker
from jobwire.cli.demo.command import demo
from jobwire.cli.parameters import examples

TRY = "Try it"
QUEUES = "Queues and jobs"
WORK = "Work"
DATA = "Data"
PROTOCOLS = "One protocol"


def build() -> typer.Typer:
    """Returns the whole command line. Further groups of commands are added here, with `add_typer`."""
    app = typer.Typer(
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
    app.command(
        rich_help_panel=QUEUES,
        epilog=examples(
            """jobwire add emails '{"to": "a@example.com"}' --name welcome --delay 60 --attempts 3""",
            "jobwire add emails - < mail.json",
        ),
    )(add)
    app.command(rich_help_panel=QUEUES, epilog=examples("jobwire counts emails --json"))(counts)
    app.command(rich_help_panel=QUEUES, epilog=examples("jobwire jobs emails --state failed --limit 5"))(jobs)
    app.command(rich_help_panel=QUEUES, epilog=examples("jobwire job emails 17", "jobwire job emails 17 --json"))(job)
    app.command(
        rich_help_panel=WORK,
        epilog=examples(
            "jobwire worker shop.mail:handle --queue emails --concurrency 10", "jobwire worker shop.mail:worker"
        ),
    )(worker)
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
