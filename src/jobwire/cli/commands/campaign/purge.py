"""`jobwire campaign purge`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.campaign.parameters import PGBOSS, QueueSchema, Schema, Url, Yes
from jobwire.counted import counted

if TYPE_CHECKING:
    from jobwire.campaigns import CampaignService

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def purge(
    sent_before: Annotated[
        str,
        typer.Option(
            metavar="AGE|TIME",
            help="An age such as 90d, 12h or 4w, or a time such as 2026-01-31 (UTC).",
            show_default=False,
        ),
    ],
    yes: Yes = False,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
) -> None:
    """Delete the rows of messages that were sent long ago.

    Campaigns keep their counts. Who got which message is not known any more.
    """
    from jobwire.cli.commands.campaign.session import Where, ask, confirm, nothing

    before = cutoff(sent_before)

    async def question(campaigns: CampaignService) -> int:
        number = await campaigns.count_sent(before=before)
        if not number:
            nothing(f"no message was sent before {before:%Y-%m-%d %H:%M} UTC")
        confirm(f"delete {counted(number, 'row')} of messages sent before {before:%Y-%m-%d %H:%M} UTC", yes=yes)
        return await campaigns.purge(sent_before=before)

    typer.echo(f"deleted {counted(ask(Where(url, schema, queue_schema), question), 'row')}")


def cutoff(text: str) -> datetime:
    """Returns the time that an age or a time on the command line means.

    >>> cutoff("2026-01-31").isoformat()
    '2026-01-31T00:00:00+00:00'
    """
    try:
        if age := re.fullmatch(r"([0-9]+)([mhdw])", text.strip().lower()):
            return datetime.now(UTC) - timedelta(**{_UNITS[age[2]]: int(age[1])})
        time = datetime.fromisoformat(text.strip())
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"--sent-before: write an age such as 90d or a time such as 2026-01-31 (got {text!r})"
        ) from None
