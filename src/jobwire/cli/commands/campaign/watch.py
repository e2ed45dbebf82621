"""`jobwire campaign watch`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, Campaign, JsonLines, QueueSchema, Schema, Url

if TYPE_CHECKING:
    from jobwire.campaigns import Campaign as Row
    from jobwire.campaigns import CampaignService


def watch(
    campaign: Campaign,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: JsonLines = False,
) -> None:
    """Show the progress of a campaign until it ends.

    With --json it prints a line whenever the campaign has changed, and the last one is its end.

    Ctrl-C leaves, and the campaign goes on. The exit code is 0 if it is COMPLETED, and 1 if it is FAILED or CANCELLED.
    """
    from jobwire.campaigns import CampaignStatus
    from jobwire.cli.commands.campaign.session import Where, ask

    try:
        ended = ask(Where(url, schema, queue_schema), lambda campaigns: _follow(campaigns, campaign, as_json=as_json))
    except KeyboardInterrupt:
        return
    if not as_json:
        _show_end(ended)
    if ended.status is not CampaignStatus.COMPLETED:
        raise typer.Exit(1)


def _show_end(ended: Row) -> None:
    from jobwire.cli.commands.campaign.views import counts, lasting, quoted, waits, was_started
    from jobwire.cli.output import remark

    took = ""
    if ended.started_at is not None and ended.completed_at is not None:
        took = f" in {lasting((ended.completed_at - ended.started_at).total_seconds())}"
    typer.echo(f"campaign {quoted(ended.name)} is {ended.status}{took}: {counts(ended)}")
    if ended.error:
        typer.echo(waits(ended), err=True)
    if was_started(ended):
        remark("who got what: jobwire campaign report --deliveries FILE.csv")


async def _follow(campaigns: CampaignService, name: str, *, as_json: bool) -> Row:
    """Shows the campaign until it has ended, and returns it. A database that is away is waited for."""
    from jobwire.campaigns import Meter
    from jobwire.campaigns.states import OPEN
    from jobwire.cli.commands.campaign.watch_view import Board, JsonRows, Lines
    from jobwire.errors import StoreUnavailable

    found = await campaigns.status(name)
    meter = Meter()
    with JsonRows() if as_json else Board() if sys.stdout.isatty() else Lines() as display:
        while True:
            display.show(found, meter.see(found, time.monotonic()))
            if found.status not in OPEN:
                return found
            await asyncio.sleep(display.every)
            while True:
                try:
                    found = await campaigns.status(found.id)
                    break
                except StoreUnavailable as error:
                    display.trouble(f"trying again: {error}")
                    await asyncio.sleep(1.0)
