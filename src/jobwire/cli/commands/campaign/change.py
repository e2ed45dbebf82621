"""`jobwire campaign pause`, `resume`, `cancel` and `rate`: they change a campaign that may be running."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, Campaign, QueueSchema, Schema, Url
from jobwire.cli.parameters import Json
from jobwire.counted import counted

if TYPE_CHECKING:
    from jobwire.campaigns import Campaign as Row
    from jobwire.campaigns import CampaignService


def pause(
    campaign: Campaign,
    *,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="A note for others.", show_default=False)] = None,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: Json = False,
) -> None:
    """Stop sending until the campaign is resumed.

    Messages that are being sent at this moment are still sent.
    """
    from jobwire.cli.commands.campaign.session import Where, ask

    _show(
        ask(Where(url, schema, queue_schema), lambda campaigns: campaigns.pause(campaign, reason=reason)),
        as_json=as_json,
    )


def resume(
    campaign: Campaign,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: Json = False,
) -> None:
    """Go on with a paused campaign."""
    from jobwire.cli.commands.campaign.session import Where, ask

    _show(ask(Where(url, schema, queue_schema), lambda campaigns: campaigns.resume(campaign)), as_json=as_json)


def cancel(
    campaign: Campaign,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: Json = False,
) -> None:
    """End a campaign for good. Messages that are not sent yet never are."""
    from jobwire.cli.commands.campaign.session import Where, ask

    _show(ask(Where(url, schema, queue_schema), lambda campaigns: campaigns.cancel(campaign)), as_json=as_json)


def rate(
    campaign: Campaign,
    per_minute: Annotated[int, typer.Argument(metavar="N", help="Messages per minute.", show_default=False)],
    *,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: Json = False,
) -> None:
    """Change the delivery rate of a campaign, also while it runs."""
    from jobwire.cli.commands.campaign.session import Where, ask
    from jobwire.cli.commands.campaign.views import quoted, record
    from jobwire.cli.output import emit

    async def question(campaigns: CampaignService) -> tuple[Row, Row]:
        before = await campaigns.status(campaign)
        return before, await campaigns.set_rate(before.id, per_minute)

    before, after = ask(Where(url, schema, queue_schema), question)
    if as_json:
        emit(record(after))
        return
    typer.echo(
        f"campaign {quoted(after.name)}: {counted(after.delivery_rate, 'message')} per minute, "
        f"before {before.delivery_rate:,}"
    )


def _show(changed: Row, *, as_json: bool) -> None:
    from jobwire.cli.commands.campaign.views import counts, quoted, record
    from jobwire.cli.output import emit

    if as_json:
        emit(record(changed))
    else:
        typer.echo(f"campaign {quoted(changed.name)} is {changed.status}: {counts(changed)}")
