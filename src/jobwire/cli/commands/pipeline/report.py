"""`jobwire pipeline report`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import (
    LAKE,
    Conf,
    Format,
    LakeRoot,
    Master,
    SettingsFile,
    period,
    settings,
)
from jobwire.cli.parameters import Json

Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the report is written.")]
Png = Annotated[bool, typer.Option("--png", metavar="", help="Write each chart as a picture too.", show_default=False)]
OUT = Path("report")


def report(
    *,
    since: Annotated[str | None, typer.Option("--from", metavar="TIME", help="From when.", show_default=False)] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Until when.", show_default=False)] = None,
    since_last: Annotated[
        bool,
        typer.Option("--since-last", metavar="", help="From the last hour of the last report.", show_default=False),
    ] = False,
    out: Out = OUT,
    title: Annotated[str, typer.Option(metavar="TEXT", help="The report's title.")] = "Job queues",
    png: Png = False,
    settings_file: SettingsFile = None,
    lake: LakeRoot = LAKE,
    table_format: Format = "parquet",
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Write the history as one HTML page with charts, and its tables as CSV and JSON."""
    from jobwire.cli.commands.pipeline.stage import staged, started
    from jobwire.cli.output import console, emit
    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.report.from_lake import report as write
    from jobwire.pipeline.report.from_lake import since_last as end_of_last
    from jobwire.pipeline.settings import read_settings

    targets = read_settings(settings_file).targets
    if since_last and since is not None:
        raise typer.BadParameter("--since-last and --from: choose one")
    start, end = period(since, until)
    if since_last:
        start = end_of_last(lake)
    with staged(quiet=as_json) as progress:
        tables = Lake(lake, table_format)
        spark = started(master, settings(conf), progress) if table_format != "parquet" else None
        progress("drawing", 0, None)
        result = write(
            tables,
            out,
            since=start,
            until=end,
            title=title,
            png=png,
            targets=targets,
            spark=spark,
        )
    if as_json:
        emit(result.as_dict())
    else:
        console().print(f"the report is in {result.path}")
