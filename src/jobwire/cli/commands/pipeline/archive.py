"""`jobwire pipeline archive` and `jobwire pipeline restore`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import (
    LAKE,
    Conf,
    Format,
    LakeRoot,
    Master,
    OneQueue,
    SettingsFile,
    given_stores,
    moment,
    settings,
)
from jobwire.cli.parameters import Json
from jobwire.counted import counted

Store = Annotated[
    str | None,
    typer.Argument(metavar="[URL]", help="The store of the queue. Without it: JOBWIRE_URL.", show_default=False),
]


def archive(
    store: Store = None,
    *,
    queue: OneQueue,
    before: Annotated[
        str, typer.Option(metavar="TIME", help="Jobs that finished before this time.", show_default=False)
    ],
    purge: Annotated[
        bool, typer.Option("--purge", metavar="", help="Then remove those that are unchanged from the queue.")
    ] = False,
    settings_file: SettingsFile = None,
    lake: LakeRoot = LAKE,
    table_format: Format = "parquet",
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Copy finished jobs into the lake, read them back and compare. With --purge, then remove them from the queue."""
    from jobwire.cli.commands.pipeline.stage import staged, started
    from jobwire.cli.output import console, emit
    from jobwire.pipeline.archive.archive import archive as keep
    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.settings import read_settings

    [address] = given_stores([store] if store else None)
    until, privacy = moment("--before", before), read_settings(settings_file).privacy
    with staged(quiet=as_json) as progress:
        tables = Lake(lake, table_format)
        spark = started(master, settings(conf), progress)
        result = keep(spark, tables, address, queue, until, purge=purge, privacy=privacy, progress=progress)
    if as_json:
        emit(result.as_dict())
        return
    out = console()
    out.print(
        f"{counted(result.read, 'finished job')}: {result.archived:,} archived, {result.there_before:,} archived before"
    )
    out.print(f"{result.verified:,} read back equal")
    if result.private:
        out.print(f"archived under the rules of privacy {', '.join(result.private)}", markup=False)
    if result.malformed:
        out.print(f"[yellow]{result.malformed:,} can't be read, and stay in the queue[/yellow]")
    if purge:
        out.print(f"{result.purged:,} removed from the queue, {result.kept:,} kept: they have changed since")


def restore(
    store: Store = None,
    *,
    queue: OneQueue,
    job_id: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="ID", help="The id of a job; may be repeated.", show_default=False),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Restore jobs for which this condition is true.", show_default=False),
    ] = None,
    from_store: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The store that the jobs were archived from, if another.", show_default=False
        ),
    ] = None,
    from_queue: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The queue that the jobs were archived from, if another.", show_default=False
        ),
    ] = None,
    lake: LakeRoot = LAKE,
    table_format: Format = "parquet",
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Put archived jobs back into a queue, finished as they were."""
    from jobwire.cli.commands.pipeline.stage import staged, started
    from jobwire.cli.output import console, emit, printable
    from jobwire.pipeline.archive.restore import restore as put_back
    from jobwire.pipeline.lake.lake import Lake

    [address] = given_stores([store] if store else None)
    with staged(quiet=as_json) as progress:
        tables = Lake(lake, table_format)
        spark = started(master, settings(conf), progress)
        result = put_back(
            spark,
            tables,
            address,
            queue,
            ids=job_id,
            where=where,
            from_store=from_store,
            from_queue=from_queue,
            progress=progress,
        )
    if as_json:
        emit(result.as_dict())
        return
    console().print(
        f"{result.restored:,} of {counted(result.found, 'job')} restored, {result.there_before:,} there before"
    )
    if result.private:
        rules = ", ".join(result.private)
        console().print(f"archived under rules of privacy, so not as they were: {printable(rules)}", markup=False)
    for one in result.missing:
        console().print(f"not in the archive: {printable(one)}", markup=False)
