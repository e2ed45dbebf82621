"""`jobwire pipeline build`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import (
    LAKE,
    Conf,
    FailOn,
    Format,
    LakeRoot,
    Master,
    fails_on_quality,
    period,
    settings,
)
from jobwire.cli.parameters import Json

if TYPE_CHECKING:
    from jobwire.pipeline.history.build import BuildResult


def build(
    *,
    since: Annotated[
        str | None, typer.Option("--from", metavar="DAY", help="The first day to build again.", show_default=False)
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="DAY", help="The day after the last one.", show_default=False)
    ] = None,
    lake: LakeRoot = LAKE,
    table_format: Format = "parquet",
    fail_on: FailOn = None,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Build the tables of jobs, runs and hourly figures from new ingested data, or again for some days."""
    from jobwire.cli.commands.pipeline.quality import end_by_quality
    from jobwire.cli.commands.pipeline.stage import session_when_needed, staged
    from jobwire.cli.output import emit
    from jobwire.pipeline.history.build import build as make
    from jobwire.pipeline.lake.lake import Lake

    by_quality = fails_on_quality(fail_on)
    first, end = period(since, until)
    with staged(quiet=as_json) as progress:
        tables = Lake(lake, table_format)
        progress("building", 0, None)
        spark = session_when_needed(master, settings(conf), progress, tables)
        result = make(spark, tables, first.date() if first else None, end.date() if end else None)
    if as_json:
        emit(asdict(result))
    else:
        show(result)
    if by_quality:
        end_by_quality(lake)


def show(result: BuildResult) -> None:
    """Prints a line per table."""
    from rich.table import Table

    from jobwire.cli.output import console

    if not result.rows_in:
        console().print("nothing new since the last build")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("table")
    table.add_column("rows", justify="right")
    for name, rows in result.rows.items():
        table.add_row(name, f"{rows:,}")
    console().print(f"from {result.rows_in:,} new rows:")
    console().print(table)
