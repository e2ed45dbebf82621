"""`jobwire completion`: a script that lets a shell complete commands, options, and names of queues and stores."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    """A shell that has completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)],
) -> None:
    """Print a script that completes commands, options, queues and stores in a shell.

    Names of queues come from the store, if it answers within a second.
    """
    from typer.completion import get_completion_script  # pyright: ignore[reportPrivateImportUsage]

    from jobwire.cli.completing import VARIABLE

    typer.echo(get_completion_script(prog_name="jobwire", complete_var=VARIABLE, shell=shell.value))
