"""`jobwire campaign batches`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobwire.cli.commands.campaign.parameters import PGBOSS, JsonLines, QueueSchema, Schema, Url

if TYPE_CHECKING:
    from jobwire.campaigns import CampaignService


def batches(
    url: Url = None, schema: Schema = None, queue_schema: QueueSchema = PGBOSS, as_json: JsonLines = False
) -> None:
    """List the batches with the numbers of their channels."""
    from jobwire.cli.commands.campaign.session import Where, ask, nothing, pages
    from jobwire.cli.commands.campaign.views import columns, moment, record
    from jobwire.cli.output import console, emit, printable

    async def question(campaigns: CampaignService) -> list[tuple[Any, Any]]:
        return [
            (batch, await campaigns.count_channels(batch.id))
            async for page in pages(campaigns.batches)
            for batch in page
        ]

    found = ask(Where(url, schema, queue_schema), question)
    if not found:
        nothing("there are no batches: `jobwire campaign import-channels FILE --batch NAME` makes one")
    if as_json:
        for batch, number in found:
            emit(record(batch) | record(number))
        return
    out = console()
    table = columns("batch", "channels", "active", "made", "id", right=("channels", "active"))
    for batch, number in found:
        table.add_row(
            printable(batch.name), f"{number.channels:,}", f"{number.active:,}", moment(batch.created_at), batch.id
        )
    out.print(table)
