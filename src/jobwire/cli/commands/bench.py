"""`jobwire bench`: how fast this store is from this machine."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import Annotated

import typer

from jobwire.cli.durations import duration
from jobwire.cli.parameters import Json, StoreName, Url

LONGEST = 60.0


def bench(
    *,
    seconds: Annotated[
        float,
        typer.Option(
            metavar="DURATION", parser=duration, help="The time for all of it, at most a minute.", show_default="60s"
        ),
    ] = LONGEST,
    concurrency: Annotated[int, typer.Option(metavar="N", min=1, help="Jobs that run at the same time.")] = 50,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:
    """Measure adds, runs and latency on this store from this machine.

    Uses a queue of its own, which is deleted at the end.

    The load slows others down that use the store, so think twice about a store in production.
    """
    from rich.table import Table

    from jobwire.cli.benchmark import measure
    from jobwire.cli.output import console, emit, remark
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask_store

    allowed = min(LONGEST, max(1.0, seconds))
    remark(f"this puts load on the store for about {allowed:.0f} s; it uses a queue of its own and deletes it")
    figures = ask_store(located(url, store), lambda connection: measure(connection, allowed, concurrency))
    if as_json:
        emit(figures.record())
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for label, value in figures.rows():
        table.add_row(label, value)
    console().print(table)
