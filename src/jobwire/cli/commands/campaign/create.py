"""`jobwire campaign create` and `jobwire campaign preview`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, Campaign, QueueSchema, Schema, Url
from jobwire.cli.parameters import Json
from jobwire.counted import counted

if TYPE_CHECKING:
    from jobwire.campaigns import CampaignService


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The campaign's name.", show_default=False)],
    *,
    batch: Annotated[str, typer.Option(metavar="NAME", help="The batch of channels to send to.", show_default=False)],
    template: Annotated[str, typer.Option(metavar="NAME", help="The template to send.", show_default=False)],
    rate: Annotated[int, typer.Option(metavar="N", help="Messages per minute.", show_default=False)],
    mode: Annotated[
        str, typer.Option(metavar="TEST|LIVE", help="In TEST mode nothing reaches a real channel.")
    ] = "TEST",
    retry_limit: Annotated[
        int, typer.Option(metavar="N", help="Attempts after the first, for each message; at most 1,000.")
    ] = 3,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A parameter of the template; may be repeated.", show_default=False),
    ] = None,
    description: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A note about the campaign.", show_default=False)
    ] = None,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: Json = False,
) -> None:
    """Create a campaign. Nothing is sent before it is started."""
    from jobwire.cli.commands.campaign.session import Where, ask
    from jobwire.cli.commands.campaign.views import NO_CHANNEL, quoted, record
    from jobwire.cli.output import emit, remark
    from jobwire.errors import InvalidOption

    params = _params(param or [])

    async def question(campaigns: CampaignService) -> tuple[Any, Any]:
        made = await campaigns.create(
            name, batch=batch, template=template, rate=rate, params=params, mode=mode.upper(),
            retry_limit=retry_limit, description=description,
        )  # fmt: skip
        return made, await campaigns.count_channels(made.batch_id or "")

    try:
        made, number = ask(Where(url, schema, queue_schema), question)
    except InvalidOption as error:
        raise _of_param(error) from None
    if as_json:
        emit(record(made))
        return
    typer.echo(
        f"created campaign {quoted(made.name)}: {counted(number.active, 'active channel')} of "
        f"{number.channels:,}, {counted(made.delivery_rate, 'message')} per minute"
    )
    typer.echo(NO_CHANNEL if made.mode == "TEST" else "LIVE: its messages reach the channels")
    remark(f"next: jobwire campaign preview {_word(name)}, then jobwire campaign start {_word(name)}")


def preview(
    campaign: Campaign,
    *,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="The largest number of messages to show.")] = 3,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: Json = False,
) -> None:
    """Show the messages that the first channels would receive. Nothing is sent."""
    from jobwire.cli.commands.campaign.session import Where, ask, nothing
    from jobwire.cli.commands.campaign.views import record
    from jobwire.cli.output import emit, printable

    found = ask(Where(url, schema, queue_schema), lambda campaigns: campaigns.preview(campaign, limit=limit))
    if not found:
        nothing(f"the batch of campaign {campaign!r} has no active channel")
    if as_json:
        emit([record(one) for one in found])
        return
    for number, one in enumerate(found):
        if number:
            typer.echo("")
        media = f" with {one.media_type} {printable(one.media_url or '')}" if one.media_type else ""
        typer.echo(typer.style(f"to {printable(one.username)}{media}:", dim=True))
        for line in one.text.splitlines():
            typer.echo(f"  {printable(line)}")


def _params(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise typer.BadParameter(f"--param: write KEY=VALUE, such as --param product=Tea (got {pair!r})")
        if key in found:
            raise typer.BadParameter(f"--param: {key} is given twice")
        found[key] = value
    return found


def _of_param(error: Any) -> Exception:
    """Returns the error with the option that the user has to change."""
    from jobwire.errors import JobwireError

    field, _, key = error.field.partition(".")
    if field != "params":
        return error
    if error.value is None:
        missing = error.rule.removeprefix("is missing: ")
        hint = f"; add --param {key}=…" if key not in ("username", "category") else ""
        return JobwireError(f"parameter {key} is missing: {missing}{hint}")
    return JobwireError(f"--param {key}: {error.rule}")


def _word(name: str) -> str:
    import shlex

    from jobwire.cli.output import printable

    return printable(shlex.quote(name))
