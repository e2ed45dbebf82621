"""`jobwire campaign status`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobwire.cli.commands.campaign.parameters import PGBOSS, Campaign, QueueSchema, Schema, Url
from jobwire.cli.parameters import Json

if TYPE_CHECKING:
    from jobwire.campaigns import Campaign as Row


def status(
    campaign: Campaign,
    url: Url = None,
    schema: Schema = None,
    queue_schema: QueueSchema = PGBOSS,
    as_json: Json = False,
) -> None:
    """Show the state of a campaign and how far it is."""
    from jobwire.cli.commands.campaign.session import Where, ask
    from jobwire.cli.commands.campaign.views import record
    from jobwire.cli.output import emit

    found = ask(Where(url, schema, queue_schema), lambda campaigns: campaigns.status(campaign))
    if as_json:
        emit(record(found))
    else:
        _show(found)


def _show(campaign: Row) -> None:
    from rich.table import Table
    from rich.text import Text

    from jobwire.cli.commands.campaign.views import NO_CHANNEL, counts, moment, state, waits
    from jobwire.cli.output import console, printable

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    params: Any = campaign.params  # of another program, perhaps not an object
    parameters = [f"{key}={value}" for key, value in params.items()] if isinstance(params, dict) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    rows: dict[str, str | Text] = {
        "campaign": Text(printable(campaign.name), style="bold"),
        "id": campaign.id,
        "description": printable(campaign.description or ""),
        "state": state(campaign.status),
        "": waits(campaign),
        "mode": NO_CHANNEL if campaign.mode == "TEST" else campaign.mode,
        "messages": counts(campaign),
        "progress": f"{campaign.progress} %",
        "rate": f"{campaign.delivery_rate:,} per minute",
        "attempts": f"at most {campaign.retry_limit + 1:,} for each message",
        "parameters": printable(", ".join(parameters)),
        "created": moment(campaign.created_at),
        "started": moment(campaign.started_at),
        "ended": moment(campaign.completed_at),
    }
    for name, value in rows.items():
        if value:
            table.add_row(name, value if isinstance(value, Text) else Text(value))
    console().print(table)
