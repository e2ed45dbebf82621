"""`jobwire campaign channels` and `jobwire campaign channels activate`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, JsonLines, QueueSchema, Schema, Url, only_after
from jobwire.cli.groups import Commands
from jobwire.cli.parameters import examples

if TYPE_CHECKING:
    from jobwire.campaigns import CampaignService, Channel

app = Commands(name="channels", rich_markup_mode="rich")


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        "jobwire campaign channels --batch news",
        "jobwire campaign channels --inactive --json",
        "jobwire campaign channels activate @news",
    ),
)
def channels(
    context: typer.Context,
    *,
    batch: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those of this batch.", show_default=False)
    ] = None,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Only active or only inactive ones.", show_default=False)
    ] = None,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: JsonLines = False,
) -> None:
    """List channels with their errors, or make one active again."""
    if only_after(context):
        return
    from jobwire.cli.commands.campaign.session import Where, ask, nothing, pages
    from jobwire.cli.commands.campaign.views import record
    from jobwire.cli.output import emit

    async def question(campaigns: CampaignService) -> bool:
        found = False
        async for page in pages(campaigns.channels, batch=batch, active=active):
            found = True
            if as_json:
                for channel in page:
                    emit(record(channel))
            else:
                _show(page)
        return found

    if not ask(Where(url, schema, queue_schema), question):
        which = {None: "", True: "active ", False: "inactive "}[active]
        nothing(f"there are no {which}channels" + ("" if batch is None else f" in batch {batch!r}"))


@app.command(epilog=examples("jobwire campaign channels activate @news"))
def activate(
    channel: Annotated[
        str, typer.Argument(metavar="CHANNEL", help="The channel's username or id.", show_default=False)
    ],
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
) -> None:
    """Make a channel active again, with no errors. The next campaign sends to it."""
    from jobwire.cli.commands.campaign.session import Where, ask
    from jobwire.cli.output import printable

    changed = ask(Where(url, schema, queue_schema), lambda campaigns: campaigns.activate_channel(channel))
    typer.echo(f"{printable(changed.username)} is active")


def _show(page: list[Channel]) -> None:
    """Prints a page in columns, without a table: a batch may have a million channels."""
    from jobwire.cli.commands.campaign.views import one_line
    from jobwire.cli.output import printable

    names = [printable(channel.username) for channel in page]
    categories = [one_line(channel.category or "-", 20) for channel in page]
    width, wide = max(map(len, names)), max(map(len, categories))
    for name, category, channel in zip(names, categories, page, strict=True):
        state = "active" if channel.is_active else "inactive"
        errors = f"{channel.error_count} errors" if channel.error_count else ""
        last = one_line(channel.last_error, 60) if channel.last_error and (errors or not channel.is_active) else ""
        parts = f"{name:{width}}  {category:{wide}}  {state:8}  {errors}  {last}"
        typer.echo(parts.rstrip())
