"""`jobwire campaign list`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, JsonLines, QueueSchema, Schema, Url

if TYPE_CHECKING:
    from jobwire.campaigns import Campaign, CampaignService, CampaignStatus


def list_campaigns(
    status: Annotated[
        str | None,
        typer.Option(
            metavar="STATE",
            help="Only those in this state: queued, running, paused, completed, failed or cancelled.",
            show_default=False,
        ),
    ] = None,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: JsonLines = False,
) -> None:
    """List campaigns in the order in which they were created."""
    from jobwire.cli.commands.campaign.session import Where, ask, nothing, pages
    from jobwire.cli.commands.campaign.views import columns, record, state
    from jobwire.cli.output import console, emit, printable

    wanted = None if status is None else _status(status)

    async def question(campaigns: CampaignService) -> list[Campaign]:
        return [campaign async for page in pages(campaigns.campaigns, status=wanted) for campaign in page]

    found = ask(Where(url, schema, queue_schema), question)
    if not found:
        nothing(f"there are no {wanted} campaigns" if wanted else "there are no campaigns")
    if as_json:
        for campaign in found:
            emit(record(campaign))
        return
    out = console()
    numbers = ("done", "sent", "failed", "of", "per min")
    table = columns("campaign", "state", "mode", *numbers, right=numbers)
    for campaign in found:
        table.add_row(
            printable(campaign.name), state(campaign.status), campaign.mode, f"{campaign.progress} %",
            f"{campaign.sent:,}", f"{campaign.failed:,}", f"{campaign.total_jobs:,}", f"{campaign.delivery_rate:,}",
        )  # fmt: skip
    out.print(table, markup=False)


def _status(text: str) -> CampaignStatus:
    from jobwire.campaigns import CampaignStatus
    from jobwire.spelling import closest

    try:
        return CampaignStatus(text.upper())
    except ValueError:
        names = [one.value.lower() for one in CampaignStatus]
        near = closest(text, names)
        hint = f"did you mean {near}?" if near else f"write {', '.join(names[:-1])} or {names[-1]}"
        raise typer.BadParameter(f"--status: {text!r} is not a state; {hint}") from None
