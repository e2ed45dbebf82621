"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.", show_default=False)]

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Where the queue lives, such as bullmq+redis://host:6379/0. "
        "Without it: JOBWIRE_URL, else an embedded server in ./.jobwire.",
        show_default=False,
    ),
]

Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON on stdout.", show_default=False)]


def examples(*lines: str) -> str:
    """An epilog of command lines, one below the other."""
    return "\n".join(("[dim]Examples[/dim]", *lines))
