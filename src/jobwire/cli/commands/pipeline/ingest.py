"""`jobwire pipeline ingest`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import (
    LAKE,
    Conf,
    Format,
    LakeRoot,
    Master,
    Parts,
    Queues,
    SettingsFile,
    Stores,
    given_stores,
    settings,
)
from jobwire.cli.parameters import Json

if TYPE_CHECKING:
    from jobwire.pipeline.history.ingest import IngestResult


def ingest(
    stores: Stores = None,
    *,
    queues: Queues = None,
    parts: Parts = None,
    settings_file: SettingsFile = None,
    lake: LakeRoot = LAKE,
    continuous: Annotated[
        bool, typer.Option("--continuous/--once", help="Run until Ctrl-C, or ingest what is there and end.")
    ] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", help="With --continuous: the time between two reads.", min=1)
    ] = 10,
    table_format: Format = "parquet",
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Copy the events and jobs of queues into the lake, before the queues delete them."""
    from jobwire.cli.commands.pipeline.stage import interrupted, session_when_needed, staged
    from jobwire.cli.output import emit
    from jobwire.pipeline.history.ingest import find_sources
    from jobwire.pipeline.history.ingest import ingest as take_in
    from jobwire.pipeline.history.ingest_forever import follow
    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.settings import read_settings

    chosen = read_settings(settings_file)
    given = given_stores(stores)
    with ExitStack() as stack, staged(quiet=as_json) as progress:
        tables = Lake(lake, table_format)
        sources = find_sources(stack, given, queues, privacy=chosen.privacy, parts=parts)
        little = None if continuous else tables
        spark = session_when_needed(master, settings(conf), progress, little)
        if continuous:
            with interrupted() as stop:
                result = follow(spark(), tables, sources, stop, every=every, progress=progress)
        else:
            result = take_in(spark, tables, sources, progress=progress)
    if as_json:
        emit(result.as_dict())
    else:
        show(result)
    raise typer.Exit(0 if result.good else 1)


def show(result: IngestResult) -> None:
    """Prints a line per source."""
    from rich.table import Table

    from jobwire.cli.output import console, printable

    table = Table(box=None, pad_edge=False)
    table.add_column("store", overflow="fold")
    table.add_column("queues", justify="right")
    table.add_column("events", justify="right")
    table.add_column("jobs", justify="right")
    for source in result.sources:
        queues = f"{len(source.offsets):,}" if source.offsets else ""
        table.add_row(printable(source.store), queues, f"{source.events:,}", f"{source.jobs:,}")
    console().print(table)
    if all(source.unchanged for source in result.sources):
        console().print("nothing new since the last ingest")
    for source in result.sources:
        if source.error:
            console().print(f"{printable(source.store)}: {printable(source.error)}", style="red", markup=False)
