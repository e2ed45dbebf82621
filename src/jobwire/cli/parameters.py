"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.", show_default=False)]

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="The store of the queue, such as bullmq+redis://host:6379/0. "
        "Without it: JOBWIRE_URL, else an embedded server in ./.jobwire.",
        show_default=False,
    ),
]

Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON on stdout.", show_default=False)]


def examples(*lines: str) -> str:
    """Returns an epilog of command lines, one below the other."""
    return "\n".join(("[dim]Examples[/dim]", *lines))
