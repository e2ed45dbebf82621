"""`jobwire demo`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.parameters import Json

_SECONDS = 12


if TYPE_CHECKING:
    from jobwire.cli.demo.history import History


def demo(
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="How long producers add jobs. With it, the demo ends by itself after the report.",
            show_default="12",
        ),
    ] = None,
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
    """Watch producers and workers share real queues on embedded servers, in a live table and in the dashboard.

    Needs no installed server and no configuration.

    In a terminal the dashboard is served until Ctrl-C, unless --seconds is given. Elsewhere the demo ends by itself.
    """
    import asyncio
    from contextlib import ExitStack

    from jobwire import embedded
    from jobwire.cli.demo.demo_campaign import DemoCampaign, campaigns_at
    from jobwire.cli.demo.demo_stores import demo_stores
    from jobwire.cli.demo.folder import reserved
    from jobwire.cli.demo.history import History
    from jobwire.cli.demo.next_steps import show_next_steps
    from jobwire.cli.demo.report import Report
    from jobwire.cli.demo.run import Plan, keep_at_work, run
    from jobwire.cli.demo.served_dashboard import served_dashboard
    from jobwire.cli.demo.watch import watcher
    from jobwire.cli.demo.worker_log import worker_log
    from jobwire.cli.output import console, emit, say

    plan = Plan(_SECONDS if seconds is None else seconds, rate)
    shown = demo_stores(folder)
    page: str | None = None
    with reserved(folder), worker_log(folder), ExitStack() as servers:
        if not as_json:
            say("starting the embedded servers …")
        past = History.begin(servers, folder, [store.url for store in shown])
        address = None
        if not as_json:
            lake = str(folder / "lake") if history else None
            sent = campaigns_at(servers.enter_context(embedded.postgres(folder)).url)
            address = servers.enter_context(served_dashboard(shown, campaigns=sent, lake=lake))
        if address is not None:
            say(f"the dashboard is live at {address}")
        with watcher(as_json=as_json) as watch:
            report: Report = asyncio.run(run(shown, plan, watch, DemoCampaign(folder, plan.seconds)))
        interrupted = report.interrupted
        if history and not interrupted:
            page, interrupted = _drawn(past, spark_ready, quiet=as_json)
        if as_json:
            emit({**report.record(), "report": page})
        else:
            stays = seconds is None and not interrupted and sys.stdin.isatty() and sys.stdout.isatty()
            report.show(console())
            show_next_steps(console(), report, folder, dashboard=address if stays else None, page=page)
            if stays and address is not None:
                asyncio.run(keep_at_work(demo_stores(folder, emptied=False)))
                say("\nstopping the embedded servers …")
    raise typer.Exit(0 if report.good else 1)


def _drawn(past: History, spark_ready: Path | None, *, quiet: bool) -> tuple[str | None, bool]:
    """Returns the path of the report's page, or None after a remark, and whether Ctrl-C has ended it."""
    from jobwire.cli.commands.pipeline.stage import staged
    from jobwire.cli.output import remark
    from jobwire.errors import JobwireError

    try:
        with staged(quiet=quiet) as progress:
            return past.report(progress, spark_ready=spark_ready), False
    except JobwireError as error:
        remark(f"no report: {error}")
        return None, False
    except KeyboardInterrupt:
        remark("no report: interrupted")
        return None, True
