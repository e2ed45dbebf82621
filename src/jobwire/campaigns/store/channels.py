"""Channels and their health.

Five failures without a success in between make a channel inactive: they are counted as jobs are settled, in the same
statement (`jobs.settle`). A block makes a channel inactive at once.
"""

from __future__ import annotations

from jobwire import checks
from jobwire.campaigns.channel_names import username_of
from jobwire.campaigns.ids import new_id
from jobwire.campaigns.models import Channel
from jobwire.campaigns.store.table import PAGE, Connection, Table
from jobwire.errors import InvalidOption


class Channels(Table[Channel]):
    """The table `channels`. `get` takes an id or a username in any spelling that the import takes."""

    kind = "channel"
    name = "channels"
    row = Channel

    async def get(self, connection: Connection, key: str) -> Channel:
        """Returns the channel with this id, else the one with this username, an active one first."""
        found = await self.rows(
            connection, "get", {"key": checks.maybe_empty(self.kind, key), "username": _spelled(key)}
        )
        by_id = [row for row in found if row.id == key]
        if not found:
            raise await self.not_found(connection, key)
        return (by_id or found)[0]

    async def add(self, connection: Connection, username: str, category: str | None = None) -> Channel:
        """Adds an active channel. Returns the existing one if there is one of this username, active or not."""
        try:
            spelled = username_of(username)
        except ValueError as reason:
            raise InvalidOption("username", username, str(reason)) from None
        values = {"id": new_id(), "username": spelled, "category": category}
        made = await self.one(connection, "add", values)
        return await self.get(connection, spelled) if made is None else made

    async def page(
        self, connection: Connection, *, batch_id: str | None = None, active: bool | None = None, limit: int = PAGE,
        after: str = "",
    ) -> list[Channel]:  # fmt: skip
        """Returns channels in the order of their ids, beginning after an id: all, those of a batch, the active ones."""
        values = {"batch_id": batch_id, "active": active, "limit": limit, "after": after}
        return await self.rows(connection, "list" if batch_id is None else "list_of_batch", values)

    async def troubled(
        self, connection: Connection, *, batch_id: str | None = None, active: bool, most: int
    ) -> list[Channel]:
        """Returns up to `most` channels, the last changed first: inactive ones, or active ones whose last message
        failed."""
        values = {"batch_id": batch_id, "active": active, "most": most}
        return await self.rows(connection, "troubled", values)

    async def block(self, connection: Connection, channel_id: str, error: str) -> Channel | None:
        """Deactivates a channel at once: it does not accept messages from us. Returns the channel, if it exists."""
        return await self.one(connection, "block", {"id": channel_id, "error": error or "blocked"})

    async def activate(self, connection: Connection, channel_id: str) -> Channel | None:
        """Makes a channel active again, with no errors. Returns the channel, if it exists."""
        return await self.one(connection, "activate", {"id": channel_id})


def _spelled(key: str) -> str:
    try:
        return username_of(key)
    except ValueError:
        return key
