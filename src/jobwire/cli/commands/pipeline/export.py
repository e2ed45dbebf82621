"""`jobwire pipeline export`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import LAKE, LakeRoot
from jobwire.cli.parameters import Json

if TYPE_CHECKING:
    from jobwire.pipeline.export.export import ExportResult


def export(
    *,
    to: Annotated[str, typer.Option("--to", metavar="FOLDER", help="The folder of the tables.", show_default=False)],
    table_format: Annotated[
        str, typer.Option("--format", metavar="NAME", help="The tables' format: delta or iceberg.")
    ] = "delta",
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table", metavar="NAME", help="Only this table, such as silver_jobs; may be repeated. Default: all.",
            show_default=False,
        ),
    ] = None,
    lake: LakeRoot = LAKE,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Write what is new in silver and gold to tables of Delta Lake or Iceberg. Needs no Spark."""
    from jobwire.cli.commands.pipeline.stage import staged
    from jobwire.cli.output import emit
    from jobwire.pipeline.export.export import export_tables, format_of

    with staged(quiet=as_json) as progress:
        result = export_tables(lake, to, format_of(table_format), tables, progress)
    if as_json:
        emit(result.as_dict())
    else:
        _show(result)


def _show(result: ExportResult) -> None:
    """Prints a line per table that has changed."""
    from rich.table import Table

    from jobwire.cli.output import console

    changed = [one for one in result.tables if one.changed]
    if not changed:
        console().print(f"nothing new since the last export to {result.to}")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("table")
    for name in ("rows written", "rows in all"):
        table.add_column(name, justify="right")
    for one in changed:
        table.add_row(one.name, f"{one.rows:,}", f"{one.rows_in_all:,}")
    console().print(table)
    console().print(f"{len(changed)} of {len(result.tables)} tables have changed in {result.to}")
