"""`jobwire campaign worker`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, QueueSchema, Schema, Url

if TYPE_CHECKING:
    from jobwire.campaigns import CampaignWorker


def worker(
    *,
    transport: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="What messages go through: outbox:FILE, webhook:URL, telegram: or another's name."
        ),
    ] = "outbox:outbox.jsonl",
    concurrency: Annotated[
        int, typer.Option(metavar="N", help="How many messages may be sent at the same time.")
    ] = 100,
    burst: Annotated[
        bool, typer.Option("--burst", metavar="", help="Stop when no campaign runs or waits for a flood limit.")
    ] = False,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
) -> None:
    """Send the messages of campaigns.

    It runs until SIGTERM or Ctrl-C, then finishes the messages that are being sent and exits.

    Any number of workers may run. Together they hold the rate of each campaign. They report to systemd.
    """
    from jobwire.campaigns import CampaignWorker
    from jobwire.campaigns.database import refusals
    from jobwire.campaigns.transports import transport_of
    from jobwire.cli.commands.campaign.session import database, exit_codes
    from jobwire.cli.logs import set_up

    through = transport_of(transport)  # a wrong address is refused before a server is started

    async def work(at: str) -> None:
        made = CampaignWorker(at, through, schema=schema, queue_schema=queue_schema, concurrency=concurrency)
        async with made:
            set_up(made.worker.id, as_json=False)
            await _run(made, burst=burst)

    with exit_codes(), refusals(), database(url) as at:
        asyncio.run(work(at))


async def _run(made: CampaignWorker, *, burst: bool) -> None:
    import logging
    import os

    from jobwire.cli.leaving import leave_soon
    from jobwire.cli.service_manager import ServiceManager
    from jobwire.cli.service_report import reported

    logging.getLogger("jobwire.campaigns").info("sending through %s", made.transport)
    async with reported(made.worker, ServiceManager.from_environment(os.environ)):
        if burst:
            await made.run_until_done()
        else:
            await made.run()
    leave_soon()
