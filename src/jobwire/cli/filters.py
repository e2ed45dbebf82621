"""Filters of jobs, as options of a command line."""

from __future__ import annotations

from typing import Annotated

import typer

from jobwire.cli.durations import duration

CHOICE = "Which jobs"

ByName = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Only jobs of this name.", rich_help_panel=CHOICE, show_default=False),
]
ByError = Annotated[
    str | None,
    typer.Option(
        "--error",
        metavar="TEXT",
        help="Only jobs with this text in their error or in the name of its class; upper or lower case.",
        rich_help_panel=CHOICE,
        show_default=False,
    ),
]
OlderThan = Annotated[
    float | None,
    typer.Option(
        "--older-than",
        metavar="DURATION",
        parser=duration,
        help="Only jobs that finished, started or else were added longer ago, such as 10m, 2h or 7d.",
        rich_help_panel=CHOICE,
        show_default=False,
    ),
]
YoungerThan = Annotated[
    float | None,
    typer.Option(
        "--younger-than",
        metavar="DURATION",
        parser=duration,
        help="Only jobs that finished, started or else were added less long ago.",
        rich_help_panel=CHOICE,
        show_default=False,
    ),
]
