"""`jobwire pipeline status`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import LAKE, LakeRoot
from jobwire.cli.parameters import Json

if TYPE_CHECKING:
    from jobwire.pipeline.status import LakeStatus


def status(
    *,
    lake: LakeRoot = LAKE,
    runs: Annotated[int, typer.Option(metavar="N", min=0, help="How many of the last runs to show.")] = 10,
    as_json: Json = False,
) -> None:
    """Show a lake's last runs, its tables, and how far its sources are built. Needs no Spark."""
    from jobwire.cli.output import emit
    from jobwire.pipeline.status import read_status

    found = read_status(lake, runs)
    if as_json:
        emit(found.as_dict())
    else:
        _show(found)


def _show(found: LakeStatus) -> None:
    from rich.table import Table

    from jobwire.cli.output import console, printable
    from jobwire.look.words import ago

    out = console()
    out.print(f"{printable(found.lake)}, {found.format}", markup=False)
    if found.runs:
        table = Table(box=None, pad_edge=False)
        for name in ("run", "command", "began", "outcome", "rows"):
            table.add_column(name, overflow="fold", justify="right" if name == "rows" else "left")
        for run in found.runs:
            style = {"failed": "red", "interrupted": "yellow"}.get(run["outcome"], "")
            words = (run["run"], run["command"], ago(run["started_at"]), run["outcome"])
            table.add_row(*map(printable, words), f"{run['rows_out']:,}", style=style)
        out.print(table)
        if error := found.runs[0]["error"]:
            out.print(f"the last run: {printable(error)}", style="red", markup=False)
    if found.tables:
        table = Table(box=None, pad_edge=False)
        for name in ("table", "rows", "newest day", "published"):
            table.add_column(name, overflow="fold", justify="right" if name == "rows" else "left")
        for one in found.tables:
            table.add_row(printable(one.table), f"{one.rows:,}", one.newest_day or "–", one.published_at[:16])
        out.print(table)
    for what, sources in found.marks.items():
        for source, mark in sources.items():
            out.print(f"{printable(source)}: {what} are built up to {_mark(mark)}", markup=False)
    if found.expired_before:
        out.print(f"rows of bronze before {found.expired_before} have expired")


def _mark(mark: int) -> str:
    """Returns a mark in words: events have the microseconds at which they were read, snapshots a generation."""
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(mark / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC" if mark > 1e12 else f"generation {mark}"
