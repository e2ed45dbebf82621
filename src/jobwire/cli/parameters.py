"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobwire.cli.durations import duration


def complete_queue(ctx: typer.Context, incomplete: str) -> list[str]:
    """Returns the queues of the store that the command line names so far."""
    from jobwire.cli.completing import queue_names  # noqa: PLC0415 - only when a shell asks

    given: dict[str, Any] = ctx.params
    return [name for name in queue_names(given.get("url"), given.get("store")) if name.startswith(incomplete)]


def _complete_store(incomplete: str) -> list[str]:
    from jobwire.cli.completing import store_names  # noqa: PLC0415 - only when a shell asks

    return [name for name in store_names() if name.startswith(incomplete)]


QueueName = Annotated[
    str,
    typer.Argument(metavar="QUEUE", help="The queue's name.", show_default=False, autocompletion=complete_queue),
]
JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.", show_default=False)]

STORE = "The store"

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="The store's URL, such as bullmq+redis://host:6379/0. "
        "Without it: JOBWIRE_URL, else an embedded server in ./.jobwire.",
        show_default=False,
        rich_help_panel=STORE,
    ),
]
StoreName = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="NAME",
        help="The store's name in jobwire.toml, or in pyproject.toml. Without it: JOBWIRE_STORE.",
        show_default=False,
        rich_help_panel=STORE,
        autocompletion=_complete_store,
    ),
]

Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON on stdout.", show_default=False)]
JsonLines = Annotated[
    bool, typer.Option("--json", metavar="", help="Print JSON on stdout, one line for each.", show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do it without asking.", show_default=False)]
Every = Annotated[
    float,
    typer.Option(metavar="DURATION", parser=duration, help="Time between two looks, such as 2s.", show_default="1s"),
]


def examples(*lines: str) -> str:
    """Returns an epilog of command lines, one below the other."""
    return "\n".join(("[dim]Examples[/dim]", *lines))
