"""`jobwire pipeline run`: ingest, build and report in one."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict

import typer

from jobwire.cli.commands.pipeline.build import show as show_build
from jobwire.cli.commands.pipeline.ingest import show as show_ingest
from jobwire.cli.commands.pipeline.parameters import (
    LAKE,
    Conf,
    FailOn,
    Format,
    LakeRoot,
    Master,
    Parts,
    Queues,
    SettingsFile,
    Stores,
    fails_on_quality,
    given_stores,
    settings,
)
from jobwire.cli.commands.pipeline.report import OUT, Out, Png
from jobwire.cli.parameters import Json


def run(
    stores: Stores = None,
    *,
    queues: Queues = None,
    parts: Parts = None,
    settings_file: SettingsFile = None,
    lake: LakeRoot = LAKE,
    out: Out = OUT,
    png: Png = False,
    table_format: Format = "parquet",
    fail_on: FailOn = None,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Ingest, build and report, one after the other."""
    from jobwire.cli.commands.pipeline.quality import end_by_quality
    from jobwire.cli.commands.pipeline.stage import session_when_needed, staged
    from jobwire.cli.output import console, emit
    from jobwire.pipeline.history.build import build
    from jobwire.pipeline.history.ingest import find_sources, ingest
    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.report.from_lake import report
    from jobwire.pipeline.settings import read_settings

    chosen = read_settings(settings_file)
    given = given_stores(stores)
    by_quality = fails_on_quality(fail_on)
    with ExitStack() as stack, staged(quiet=as_json) as progress:
        tables = Lake(lake, table_format)
        sources = find_sources(stack, given, queues, privacy=chosen.privacy, parts=parts)
        spark = session_when_needed(master, settings(conf), progress, tables)
        taken = ingest(spark, tables, sources, progress=progress)
        progress("building", 0, None)
        built = build(spark, tables)
        progress("drawing", 0, None)
        written = report(
            tables, out, png=png, targets=chosen.targets, spark=None if table_format == "parquet" else spark()
        )
    if as_json:
        emit({"ingest": taken.as_dict(), "build": asdict(built), "report": written.as_dict()})
    else:
        show_ingest(taken)
        show_build(built)
        console().print(f"the report is in {written.path}")
    if taken.good and by_quality:
        end_by_quality(lake)
    raise typer.Exit(0 if taken.good else 1)
