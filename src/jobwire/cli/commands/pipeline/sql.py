"""`jobwire pipeline sql`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import LAKE, LakeRoot
from jobwire.cli.parameters import JsonLines

if TYPE_CHECKING:
    from jobwire.pipeline.sql.answers import Answer

MOST_ROWS = 1_000
"""Rows of a table for people. JSON and CSV have all of them."""


def sql(
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERY", help="The query, or - to read it from stdin. Without one, the tables are listed.",
            show_default=False,
        ),
    ] = None,
    *,
    lake: LakeRoot = LAKE,
    as_json: JsonLines = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", metavar="", help="Print CSV on stdout, with a header.", show_default=False)
    ] = False,
    views: Annotated[
        Path | None,
        typer.Option(
            "--views", metavar="FILE", help="Write a DuckDB file of views over the lake instead.", show_default=False
        ),
    ] = None,
) -> None:  # fmt: skip
    """Ask the lake's tables a question in SQL. Needs no Spark, writes nothing and reads nothing but the lake."""
    from jobwire.cli.exit_codes import WrongUsage
    from jobwire.cli.output import console
    from jobwire.pipeline.sql.answers import answered, list_tables
    from jobwire.pipeline.sql.query import QueryError

    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv: choose one")
    if views is not None:
        if query is not None or as_json or as_csv:
            raise typer.BadParameter("--views: takes no query and prints no rows")
        from jobwire.pipeline.sql.views import write_views

        names = write_views(lake, views)
        console().print(f"{views} has {len(names)} views: {', '.join(names)}", soft_wrap=True)
        return
    show = _print_csv if as_csv else _print_json if as_json else _print_table
    try:
        if query is None:
            show(list_tables(lake))
            return
        with answered(lake, sys.stdin.read() if query == "-" else query) as answer:
            show(answer)
    except QueryError as error:
        raise WrongUsage(str(error)) from error


def _print_json(answer: Answer) -> None:
    from jobwire.cli.output import emit
    from jobwire.pipeline.sql.cells import plain

    for row in answer.rows:
        emit(dict(zip(answer.names, map(plain, row), strict=True)))


def _print_csv(answer: Answer) -> None:
    import csv

    from jobwire.pipeline.sql.cells import as_text

    written = csv.writer(sys.stdout, lineterminator="\n")
    written.writerow(answer.names)
    written.writerows(map(as_text, row) for row in answer.rows)


def _print_table(answer: Answer) -> None:
    """Prints the first rows, and a remark if there are more."""
    from itertools import islice

    from rich.table import Table
    from rich.text import Text

    from jobwire.cli.output import console, printable, remark
    from jobwire.pipeline.sql.cells import as_text

    table = Table(box=None, pad_edge=False)
    for name, number in zip(answer.names, answer.numbers, strict=True):
        table.add_column(Text(printable(name)), justify="right" if number else "left", overflow="fold")
    for row in islice(answer.rows, MOST_ROWS):
        table.add_row(*(Text(printable(as_text(value))) for value in row))
    console().print(table)
    if next(answer.rows, None) is not None:
        remark(f"these are the first {MOST_ROWS:,} rows: --csv and --json print all of them")
