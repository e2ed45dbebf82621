"""`jobwire campaign init`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, QueueSchema, Schema, Url


def init(url: Url = None, schema: Schema = None, queue_schema: QueueSchema = PGBOSS) -> None:
    """Create or upgrade the tables and the two queues.

    Tables of an application with the same ones are adopted with their rows. Running it again changes nothing.
    """
    from jobwire.cli.commands.campaign.session import Where, ask
    from jobwire.cli.output import printable

    report = ask(Where(url, schema, queue_schema), lambda campaigns: campaigns.init(), new=True)
    if report.version_before == 0 and not report.adopted:
        typer.echo(f"made the campaign tables in schema {printable(report.schema)!r} (version {report.version})")
        for note in report.notes:
            typer.echo(note)
    else:
        typer.echo(str(report))
    typer.echo(f"the queues start-campaign and send-message are in schema {printable(queue_schema)!r}")
