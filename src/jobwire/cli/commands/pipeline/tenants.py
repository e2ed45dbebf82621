"""`jobwire pipeline tenants`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobwire.pipeline.history.tenants import TenantCost


def tenants(
    *,
    since: Annotated[
        str | None, typer.Option("--from", metavar="DAY", help="The first day.", show_default=False)
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="DAY", help="The day after the last one.", show_default=False)
    ] = None,
    settings_file: SettingsFile = None,
    lake: LakeRoot = LAKE,
    table_format: Format = "parquet",
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Show the run time, jobs and failures of each tenant, by a value in the payload."""
    from jobwire.cli.commands.pipeline.stage import staged, started
    from jobwire.cli.output import emit
    from jobwire.errors import InvalidOption
    from jobwire.pipeline.history.tenants import tenant_costs
    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.settings import read_settings

    chosen = read_settings(settings_file).tenants
    if not chosen.paths:
        raise InvalidOption(
            "pipeline.tenants", None, 'must have a queue: write emails = "$.tenant" under it into jobwire.toml'
        )
    first, end = period(since, until)
    with staged(quiet=as_json) as progress:
        spark = started(master, settings(conf), progress)
        tables = Lake(lake, table_format)
        progress("adding up", 0, None)
        found = tenant_costs(spark, tables, chosen, first.date() if first else None, end.date() if end else None)
    if as_json:
        emit([asdict(one) for one in found])
    else:
        _show(found)


def _show(found: Sequence[TenantCost]) -> None:
    from rich.table import Table

    from jobwire.cli.output import console, printable

    if not found:
        console().print("no run of a queue with a path for tenants")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("queue", "tenant"):
        table.add_column(name, overflow="fold")
    for name in ("run time", "runs", "jobs", "failures"):
        table.add_column(name, justify="right")
    for one in found:
        name = one.tenant if one.tenants == 1 else f"{one.tenants:,} others"
        figures = (f"{one.run_seconds:,.1f} s", f"{one.runs:,}", f"{one.jobs:,}", f"{one.failures:,}")
        table.add_row(printable(one.queue), printable(name), *figures)
    console().print(table)
