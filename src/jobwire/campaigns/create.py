"""Creates templates and campaigns, and shows what would be sent. Everything is checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from jobwire import checks
from jobwire.campaigns.models import Batch, Campaign, Template
from jobwire.campaigns.names import checked_name
from jobwire.campaigns.store import Store, store_of
from jobwire.campaigns.store.campaigns import MOST_RETRIES, NewCampaign, bounded
from jobwire.campaigns.store.table import Connection
from jobwire.campaigns.templates import MessageTemplate
from jobwire.errors import InvalidOption

MODES = ("TEST", "LIVE")


@dataclass(frozen=True, slots=True)
class Preview:
    """The message that one channel would receive."""

    username: str
    text: str
    media_type: str | None
    media_url: str | None


async def add_template(
    connection: Connection,
    name: str,
    content: str,
    *,
    media_type: str | None = None,
    media_url: str | None = None,
    schema: str = "public",
) -> Template:
    """Adds a template. Refuses unmatched braces, a media type without a URL, a text beyond Telegram's limit, and the
    name of another template."""
    message = MessageTemplate(content, media_type, media_url)
    store = store_of(schema)
    checked_name("name", name)
    async with connection.transaction():
        await store.templates.refuse_taken(connection, name)
        return await store.templates.add(connection, name, message)


async def create_campaign(
    connection: Connection,
    name: str,
    *,
    batch: str,
    template: str,
    rate: int,
    params: Mapping[str, Any] | None = None,
    mode: str = "TEST",
    retry_limit: int = 3,
    description: str | None = None,
    created_by: str | None = None,
    schema: str = "public",
) -> Campaign:
    """Creates a campaign that is QUEUED. `batch`, `template` and `created_by` are ids or names.

    `rate` is in messages per minute. In mode TEST nothing is handed to a real channel. Refused are a missing or unknown
    parameter of the template, a `{category}` that some channels of the batch don't have, a message that would be too
    long for one of the channels, and the name of another campaign.
    """
    checked_name("name", name)
    if mode not in MODES:
        hint = f"; did you mean {mode.upper()}?" if str(mode).upper() in MODES else ""
        raise InvalidOption("mode", mode, f"must be TEST or LIVE{hint}")
    bounded("rate", rate, minimum=1)
    bounded("retry_limit", retry_limit, minimum=0, maximum=MOST_RETRIES)
    if description is not None:
        checks.maybe_empty("description", description)
    store = store_of(schema)
    async with connection.transaction():
        its_batch = await store.batches.get(connection, batch)
        its_template = await store.templates.get(connection, template)
        user = None if created_by is None else await store.users.get(connection, created_by)
        checked = await _checked_params(connection, store, its_batch, its_template, params or {})
        new = NewCampaign(
            name, its_batch.id, its_template.id, checked, mode, rate, retry_limit, description, user and user.id
        )
        await store.campaigns.refuse_taken(connection, name)
        return await store.campaigns.add(connection, new)


async def preview(
    connection: Connection, campaign: str, *, limit: int = 3, schema: str = "public"
) -> list[Preview]:  # fmt: skip
    """Returns the messages that the first active channels of a campaign's batch would receive. Nothing is sent."""
    store = store_of(schema)
    found = await store.campaigns.get(connection, campaign)
    template = await store.templates.get(connection, found.template_id or "")
    message = MessageTemplate(template.content, template.media_type, template.media_url)
    params = _used(message, found.params)
    channels = await store.channels.page(
        connection, batch_id=found.batch_id or "", active=True, limit=checks.whole("limit", limit, minimum=1)
    )
    return [
        Preview(
            channel.username,
            message.render(params, {"username": channel.username, "category": channel.category}),
            message.media_type,
            message.media_url,
        )
        for channel in channels
    ]


async def _checked_params(
    connection: Connection, store: Store, batch: Batch, template: Template, params: Mapping[str, Any]
) -> dict[str, Any]:
    message = MessageTemplate(template.content, template.media_type, template.media_url)
    message.check_params(params)
    needs = await store.batches.needs_of(connection, batch.id, message.uses("username"), message.uses("category"))
    if needs.without_category and message.uses("category"):
        rule = f"is missing: {needs.without_category:,} active channels of batch {batch.name!r} have none"
        raise InvalidOption("params.category", None, rule)
    return message.check_params(params, needs.longest)


def _used(message: MessageTemplate, params: Any) -> dict[str, Any]:
    """Returns the parameters that a template uses. Campaigns of other programs were not checked when they were created:
    a parameter that is missing there is refused with its name."""
    given = cast("Mapping[str, Any]", params if isinstance(params, Mapping) else {})
    return message.check_params({name: value for name, value in given.items() if name in message.names})
