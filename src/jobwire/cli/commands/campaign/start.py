"""`jobwire campaign start`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, Campaign, QueueSchema, Schema, Url, Yes
from jobwire.cli.parameters import Json
from jobwire.counted import counted

if TYPE_CHECKING:
    from jobwire.campaigns import Campaign as Row
    from jobwire.campaigns import CampaignService


def start(
    campaign: Campaign,
    *,
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: Json = False,
) -> None:
    """Start a campaign, so that the workers send its messages.

    One in LIVE mode is started after a question at the terminal, or with --yes.
    """
    from jobwire.cli.commands.campaign.session import Where, ask, confirm
    from jobwire.cli.commands.campaign.views import NO_CHANNEL, quoted, record
    from jobwire.cli.output import emit, remark

    async def question(campaigns: CampaignService) -> tuple[Row, int]:
        found = await campaigns.status(campaign)
        number = (await campaigns.count_channels(found.batch_id)).active if found.batch_id else 0
        if found.mode == "LIVE" and found.status == "QUEUED":
            to = counted(number, "real channel")
            confirm(f"send campaign {quoted(found.name)} to {to}, {found.delivery_rate:,} per minute", yes=yes)
        return await campaigns.start(found.id), number

    started, number = ask(Where(url, schema, queue_schema), question)
    if as_json:
        emit(record(started))
        return
    typer.echo(
        f"campaign {quoted(started.name)} is {started.status}: {counted(number, 'channel')}, "
        f"{counted(started.delivery_rate, 'message')} per minute"
    )
    if started.mode == "TEST":
        typer.echo(NO_CHANNEL)
    remark("its messages are sent by jobwire campaign worker; jobwire campaign watch shows the progress")
