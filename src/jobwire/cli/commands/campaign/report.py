"""`jobwire campaign report`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, Campaign, QueueSchema, Schema, Url
from jobwire.cli.parameters import Json
from jobwire.counted import counted

if TYPE_CHECKING:
    from jobwire.campaigns import CampaignReport, CampaignService


def report(
    campaign: Campaign,
    *,
    deliveries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv", help="Write who got what into this file, one line for each channel.", show_default=False
        ),
    ] = None,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: Json = False,
) -> None:
    """Show what became of a campaign's messages.

    The report has counts, failures by reason, and the rate that was reached beside the one that was asked for.
    """
    from jobwire.cli.commands.campaign.session import Where, ask
    from jobwire.cli.output import emit

    async def question(campaigns: CampaignService) -> tuple[CampaignReport, int]:
        found = await campaigns.report(campaign)
        written = 0 if deliveries is None else await _write(campaigns, found, deliveries)
        return found, written

    found, written = ask(Where(url, schema, queue_schema), question)
    if as_json:
        emit(_record(found))
    else:
        _show(found)
    if deliveries is not None:
        from jobwire.cli.output import printable, remark

        remark(f"{counted(written, 'line')} written to {printable(str(deliveries))}")


async def _write(campaigns: CampaignService, found: CampaignReport, file: Path) -> int:
    """Writes the deliveries in pages. The file has its name once it is complete."""
    from jobwire.cli.commands.campaign.deliveries import new_file
    from jobwire.cli.commands.campaign.progress import bar
    from jobwire.cli.commands.campaign.session import pages

    written = 0
    with new_file(file) as write, bar(f"writing {file.name}") as progress:
        async for page in pages(campaigns.deliveries, id_of="job_id", campaign=found.campaign.id):
            write(page)
            written += len(page)
            progress(written, found.campaign.total_jobs or None)
    return written


def _record(found: CampaignReport) -> dict[str, Any]:
    from jobwire.cli.commands.campaign.views import record

    return {
        "campaign": record(found.campaign),
        "counts": record(found.counts),
        "reasons": [record(reason) for reason in found.reasons],
        "per_minute": None if found.per_minute is None else round(found.per_minute, 2),
    }


def _show(found: CampaignReport) -> None:
    from jobwire.cli.commands.campaign.views import (
        columns,
        lasting,
        moment,
        one_line,
        per_minute,
        quoted,
        waits,
        was_started,
    )
    from jobwire.cli.output import console

    campaign, rows = found.campaign, found.counts
    typer.echo(f"campaign {quoted(campaign.name)} is {campaign.status}, mode {campaign.mode}")
    if note := waits(campaign):
        typer.echo(note)
    if not was_started(campaign):
        typer.echo("it was not started")
        return
    if campaign.started_at is None:
        typer.echo("it is unknown when it was started")
    elif campaign.completed_at is not None:
        took = lasting((campaign.completed_at - campaign.started_at).total_seconds())
        typer.echo(f"from {moment(campaign.started_at)} to {moment(campaign.completed_at)}, {took}")
    else:
        typer.echo(f"since {moment(campaign.started_at)}")
    typer.echo(f"{campaign.sent:,} sent, {campaign.failed:,} failed of {counted(campaign.total_jobs, 'message')}")
    if left := rows.queued + rows.sending:
        one = left == 1
        if campaign.completed_at is not None:
            typer.echo(f"{left:,} {'was' if one else 'were'} never sent")
        else:
            typer.echo(f"{left:,} {'is' if one else 'are'} not sent yet")
    if (purged := campaign.sent - rows.sent) > 0:
        typer.echo(f"{counted(purged, 'row')} of sent messages purged: they are in the counts above only")
    if rows.retried:
        typer.echo(f"{rows.retried:,} took more than one attempt")
    if rows.sent:
        reached = "all at once" if found.per_minute is None else f"{per_minute(found.per_minute)} reached"
        typer.echo(
            f"rate: {reached}, {per_minute(campaign.delivery_rate)} asked; "
            f"at most {rows.busiest_minute:,} in one minute of the clock"
        )
    if found.reasons:
        out = console()
        table = columns("failures", "reason", "example", right=("failures",))
        for reason in found.reasons:
            table.add_row(f"{reason.count:,}", reason.reason, one_line(reason.example, 200))
        out.print()
        out.print(table, markup=False)
