"""`jobwire pipeline load`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import (
    LAKE,
    Conf,
    Format,
    LakeRoot,
    Master,
    OneQueue,
    SettingsFile,
    pairs,
    settings,
)
from jobwire.cli.parameters import Json
from jobwire.counted import counted

if TYPE_CHECKING:
    from jobwire.pipeline.load.load import LoadResult


class Kind(StrEnum):
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    TABLE = "table"


class Invalid(StrEnum):
    QUARANTINE = "quarantine"
    FAIL = "fail"


def load(
    source: Annotated[str, typer.Argument(metavar="FILE|TABLE", help="CSV, JSON lines, Parquet, or a Spark table.")],
    *,
    to: Annotated[str, typer.Option(metavar="URL", help="The store to load into.", show_default=False)],
    queue: OneQueue,
    kind: Annotated[
        Kind | None, typer.Option(help="The kind of source. Default: by the file's ending.", show_default=False)
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEANING=COLUMN",
            help="The column for id, payload, name, priority, attempts, run_at, unique_key or options; "
            "may be repeated. The other columns make up the job's data.",
            show_default=False,
        ),
    ] = None,
    infer: Annotated[bool, typer.Option("--infer", metavar="", help="Infer the types of CSV columns.")] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of Spark's reader, such as sep=; or encoding=ISO-8859-1; may be repeated. "
            "CSV is read as RFC 4180 has it.",
            show_default=False,
        ),
    ] = None,
    invalid: Annotated[Invalid, typer.Option(help="What to do with rows that can't become jobs.")] = Invalid.QUARANTINE,
    hold: Annotated[
        bool, typer.Option("--hold", metavar="", help="Pause the queue until everything is loaded.")
    ] = False,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The load's name: a load of the same name is continued. Default: made from the path and the target.",
            show_default=False,
        ),
    ] = None,
    settings_file: SettingsFile = None,
    lake: LakeRoot = LAKE,
    table_format: Format = "parquet",
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Turn the rows of a file or table into jobs. Repeating the command adds no job twice."""
    from jobwire.cli.commands.pipeline.stage import staged, started
    from jobwire.cli.output import emit
    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.load.load import load as bring_in
    from jobwire.pipeline.settings import read_settings

    privacy = read_settings(settings_file).privacy
    with staged(quiet=as_json) as progress:
        tables = Lake(lake, table_format)
        spark = started(master, settings(conf), progress)
        result = bring_in(
            spark,
            source,
            to,
            queue,
            lake=tables,
            run=run,
            kind=None if kind is None else kind.value,
            columns=pairs("--column", column),
            options=pairs("--option", option),
            infer=infer,
            invalid=invalid.value,
            hold=hold,
            privacy=privacy,
            progress=progress,
        )
    if as_json:
        emit(result.as_dict())
    else:
        _show(result)


def _show(result: LoadResult) -> None:
    from jobwire.cli.output import console, printable

    out = console()
    out.print(
        f"{counted(result.rows, 'row')}: {counted(result.added, 'job')} added, {result.there_before:,} there before"
    )
    if result.changed:
        out.print(f"[yellow]{counted(result.changed, 'row')} with the id of a job that has another payload[/yellow]")
    if result.refused:
        out.print(f"[yellow]{result.refused:,} refused by the store[/yellow]")
    if result.rejected:
        out.print(f"[yellow]{counted(result.rejected, 'row')} can't become a job; see the lake's quarantine[/yellow]")
    for reason, count in result.reasons.items():
        out.print(f"  {count:,} × {printable(reason)}", markup=False)
    if result.missing:
        out.print(f"{result.missing:,} are no longer in the queue: they have run and were removed since")
