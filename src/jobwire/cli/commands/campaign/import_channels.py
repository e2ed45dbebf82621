"""`jobwire campaign import-channels`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, QueueSchema, Schema, Url
from jobwire.cli.parameters import Json
from jobwire.counted import counted

if TYPE_CHECKING:
    from jobwire.campaigns import BadLine, CampaignService, ImportReport


def import_channels(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A CSV file with the header username or username,category.", show_default=False
        ),
    ],
    *,
    batch: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The batch that lists the channels. It is added if it is new.", show_default=False
        ),
    ],
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", metavar="", help="Import the good lines of a file with bad ones.")
    ] = False,
    bad_lines: Annotated[
        Path | None,
        typer.Option(
            "--bad-lines", metavar="FILE", help="Write all bad lines to a CSV file: line,reason.", show_default=False
        ),
    ] = None,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: Json = False,
) -> None:
    """Import channels from a CSV file, all or none.

    A username is name, @name or a link such as t.me/name. Bad lines are listed with number and reason.
    """
    from jobwire.campaigns import ImportRefused
    from jobwire.cli.commands.campaign.progress import bar
    from jobwire.cli.commands.campaign.session import Where, ask, leave
    from jobwire.cli.output import emit

    file.open("rb").close()  # a file that can't be read is refused before a server is started

    async def question(campaigns: CampaignService) -> ImportReport:
        with bar(f"importing {file.name}") as progress:
            return await campaigns.import_channels(
                file, batch=batch, skip_bad=skip_bad, on_bad=on_bad, progress=progress
            )

    try:
        with _written(bad_lines) as on_bad:
            report = ask(Where(url, schema, queue_schema), question)
    except ImportRefused as refused:
        _show_bad(refused.report)
        bad, lines = refused.report.bad, refused.report.lines
        leave(f"nothing was imported: {bad:,} of {counted(lines, 'line')} can't be; --skip-bad imports the others", 1)
    _show_bad(report)
    if as_json:
        from jobwire.cli.commands.campaign.views import record

        emit(record(report))
    else:
        _show(report, batch)


@contextlib.contextmanager
def _written(file: Path | None) -> Generator[Callable[[BadLine], None] | None]:
    """Yields a function that writes a bad line to the file, which has only a header if there are none."""
    if file is None:
        yield None
        return
    with file.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(("line", "reason"))
        yield lambda bad: rows.writerow((bad.number, bad.reason))


def _show(report: ImportReport, batch: str) -> None:
    from jobwire.cli.commands.campaign.views import quoted

    typer.echo(f"{counted(report.added, 'channel')} added, {report.listed:,} listed in batch {quoted(batch)}")
    if report.existing:
        inactive = f"; {report.inactive:,} of them inactive, and stay so" if report.inactive else ""
        typer.echo(f"{report.existing:,} existed before{inactive}")
    if report.duplicates:
        typer.echo(f"{counted(report.duplicates, 'line')} repeated an earlier one")
    if report.bad:
        typer.echo(f"{counted(report.bad, 'bad line')} left out")


def _show_bad(report: ImportReport) -> None:
    from jobwire.cli.output import printable

    for line in report.bad_lines:
        typer.echo(f"line {line.number}: {printable(line.reason)}", err=True)
    if more := report.bad - len(report.bad_lines):
        typer.echo(f"and {more:,} more", err=True)
