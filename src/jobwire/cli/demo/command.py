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
    history: Annotated[
        bool, typer.Option("--report/--no-report", help="End with a report of what happened, made by Spark.")
    ] = True,
    *,
    spark_ready: Annotated[
        Path | None, typer.Option(hidden=True, help="Make the report when this file exists: Spark is installed then.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Watch producers and workers share real queues on embedded servers.

    Needs no installed server and no configuration. Ends by itself, or on Ctrl-C.
    """
    import asyncio
    from contextlib import ExitStack

    from jobwire.cli.commands.pipeline.stage import staged
    from jobwire.cli.demo.demo_campaign import DemoCampaign
    from jobwire.cli.demo.demo_stores import demo_stores
    from jobwire.cli.demo.folder import reserved
    from jobwire.cli.demo.history import History
    from jobwire.cli.demo.report import Report
    from jobwire.cli.demo.run import Plan, run
    from jobwire.cli.demo.watch import watcher
    from jobwire.cli.demo.worker_log import worker_log
    from jobwire.cli.output import console, emit, remark
    from jobwire.errors import JobwireError

    plan = Plan(seconds, rate)
    shown = demo_stores(folder)
    page: str | None = None
    with reserved(folder), ExitStack() as servers:
        past = History.begin(servers, folder, [store.url for store in shown]) if history else None
        with worker_log(folder), watcher(as_json=as_json) as watch:
            report: Report = asyncio.run(run(shown, plan, watch, DemoCampaign(folder, seconds)))
        if past is not None and not report.interrupted:
            try:
                with staged(quiet=as_json) as progress:
                    page = past.report(progress, spark_ready=spark_ready)
            except JobwireError as error:
                remark(f"no report: {error}")
    if as_json:
        emit({**report.record(), "report": page})
    else:
        report.show(console(), folder, page)
    raise typer.Exit(0 if report.good else 1)
