"""`jobwire demo`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobwire.cli.parameters import Json


def demo(
    seconds: Annotated[float, typer.Option(metavar="N", help="How long producers add jobs.")] = 12,
    rate: Annotated[float, typer.Option(metavar="N", help="Jobs added per second, on each protocol.")] = 200,
    folder: Annotated[Path, typer.Option(metavar="PATH", help="Where the embedded servers keep their data.")] = Path(
        ".jobwire/demo"
    ),
    as_json: Json = False,
) -> None:
    """Watch producers and workers share real queues on embedded servers.

    Needs nothing installed and asks nothing. Ends by itself, or cleanly on Ctrl-C.
    """
    import asyncio

    from jobwire.cli.demo.place import reserved
    from jobwire.cli.demo.report import Report
    from jobwire.cli.demo.run import Plan, run
    from jobwire.cli.demo.stations import stations
    from jobwire.cli.demo.watch import watcher
    from jobwire.cli.output import console, emit

    plan = Plan(seconds, rate)
    with reserved(folder), watcher(as_json=as_json) as watch:
        report: Report = asyncio.run(run(stations(folder), plan, watch))
    if as_json:
        emit(report.record())
    else:
        report.show(console(), folder)
    raise typer.Exit(0 if report.good else 1)
