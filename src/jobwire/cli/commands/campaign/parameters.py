"""Arguments and options that the commands of campaigns share."""

from __future__ import annotations

from typing import Annotated

import typer

DATABASE = "The database"

Campaign = Annotated[
    str, typer.Argument(metavar="CAMPAIGN", help="The campaign's name or id.", show_default=False)
]  # fmt: skip
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="A PostgreSQL URL, such as postgresql://localhost/app. "
        "Without it: JOBWIRE_CAMPAIGN_URL, else an embedded server in ./.jobwire.",
        show_default=False,
        rich_help_panel=DATABASE,
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="NAME",
        help="The schema of the campaign tables. Without it: the URL's ?schema=, else public.",
        show_default=False,
        rich_help_panel=DATABASE,
    ),
]
QueueSchema = Annotated[
    str, typer.Option("--queue-schema", metavar="NAME", help="The schema of pg-boss.", rich_help_panel=DATABASE)
]
PGBOSS = "pgboss"
JsonLines = Annotated[
    bool, typer.Option("--json", metavar="", help="Print JSON on stdout, one line for each.", show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do it without asking.", show_default=False)]


def only_after(context: typer.Context) -> bool:
    """Returns True if a command below a group was asked for. Refuses options that were given before its name: they
    would have no effect."""
    if context.invoked_subcommand is None:
        return False
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"write {parameter.opts[0]} after {context.invoked_subcommand}")
    return True
