"""`jobwire pipeline tidy`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import LAKE, Conf, LakeRoot, Master, settings
from jobwire.cli.durations import duration
from jobwire.cli.parameters import Json
from jobwire.counted import counted


def tidy(
    *,
    keep: Annotated[
        float | None,
        typer.Option(
            metavar="AGE",
            parser=duration,
            help="Let ingested rows expire that are older than this, such as 90d, and that a build has used. "
            "Without it, none expire.",
            show_default=False,
        ),
    ] = None,
    lake: LakeRoot = LAKE,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Merge the small files of many ingests, let old ingested rows expire, and remove what crashes left.

    Jobs, runs, figures and archive stay.
    """
    from jobwire.cli.commands.pipeline.stage import session_when_needed, staged
    from jobwire.cli.output import console, emit
    from jobwire.pipeline.history.tidy import tidy as make
    from jobwire.pipeline.lake.lake import Lake

    with staged(quiet=as_json) as progress:
        tables = Lake(lake)
        progress("tidying", 0, None)
        spark = session_when_needed(master, settings(conf), progress, tables)
        result = make(spark, tables, None if keep is None else timedelta(seconds=keep))
    if as_json:
        emit(result.as_dict())
        return
    console().print(f"merged {counted(result.merged, 'part')} of ingested rows into {result.into:,}")
    if keep is not None:
        console().print(f"{counted(result.expired_rows, 'row')} in {counted(result.expired, 'part')} expired")
    if result.swept:
        console().print(f"removed {counted(result.swept, 'folder')} that nothing named")
