"""`jobwire queues`: all queues of a store."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.parameters import JsonLines, StoreName, Url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobwire.connection import Connection
    from jobwire.figures import QueueFigures


def queues(
    names: Annotated[
        bool, typer.Option("--names", metavar="", help="Print the names only, and don't count jobs.")
    ] = False,
    url: Url = None,
    store: StoreName = None,
    as_json: JsonLines = False,
) -> None:
    """List the queues of a store: jobs in each state, the age of the oldest waiting one, and which are paused."""
    from jobwire.cli.exit_codes import REFUSED, NothingFound
    from jobwire.cli.output import complain, console, emit, printable
    from jobwire.cli.profiles import located
    from jobwire.cli.queueview import record, table
    from jobwire.cli.session import ask_store
    from jobwire.figures import figures_of

    async def question(connection: Connection) -> tuple[Sequence[str], Sequence[QueueFigures], str]:
        known = await connection.queues()
        return known, [] if names else await figures_of(connection, known), connection.address.redacted

    known, figures, where = ask_store(located(url, store), question)
    if not known:
        raise NothingFound(f"there are no queues in {where}")
    if names:
        for name in known:
            emit(name) if as_json else typer.echo(printable(name))
    elif as_json:
        for one in figures:
            emit(record(one))
    else:
        console().print(table(figures))
    refused = [one for one in figures if one.refused]
    for one in refused:
        complain(f"queue {printable(one.name)} could not be read: {one.refused}")
    if refused:
        raise typer.Exit(REFUSED)
