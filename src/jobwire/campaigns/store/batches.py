"""Batches: named sets of channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobwire import checks
from jobwire.campaigns.ids import new_id
from jobwire.campaigns.models import Batch
from jobwire.campaigns.names import checked_name
from jobwire.campaigns.store.table import PAGE, Connection, Table


@dataclass(frozen=True, slots=True)
class BatchChannels:
    """The number of channels in a batch."""

    channels: int
    active: int


@dataclass(frozen=True, slots=True)
class BatchNeeds:
    """The demands of a template on the active channels of a batch."""

    without_category: int
    longest: int
    """The most UTF-16 units that one channel fills in."""


class Batches(Table[Batch]):
    """The tables `batches` and `batch_channels`."""

    kind = "batch"
    name = "batches"
    row = Batch

    async def add(self, connection: Connection, name: str) -> Batch:
        """Adds an empty batch."""
        [made] = await self.rows(connection, "add", {"id": new_id(), "name": checks.text("name", name)})
        return made

    async def get_or_add(self, connection: Connection, key: str) -> Batch:
        """Returns the batch with this id or name, or adds one of this name. Of several callers at once, one adds it:
        the others wait for the end of its transaction, so call it in one."""
        await self.lock_name(connection, checks.text("batch", key))
        found = await self.rows(connection, "get", {"key": key})
        return await self.get(connection, key) if found else await self.add(connection, checked_name("batch", key))

    async def add_channels(self, connection: Connection, batch_id: str, channel_ids: Sequence[str]) -> int:
        """Lists channels in a batch. Returns how many were not in it before."""
        return await self.number(connection, "add_channels", {"batch_id": batch_id, "channel_ids": list(channel_ids)})

    async def remove_channels(self, connection: Connection, batch_id: str, channel_ids: Sequence[str]) -> int:
        """Takes channels out of a batch. Returns how many were in it."""
        values = {"batch_id": batch_id, "channel_ids": list(channel_ids)}
        return await self.number(connection, "remove_channels", values)

    async def count(self, connection: Connection, batch_id: str) -> BatchChannels:
        """Returns the number of channels in a batch."""
        [counted] = await self.made(connection, "count", {"batch_id": batch_id}, BatchChannels)
        return counted

    async def needs_of(self, connection: Connection, batch_id: str, usernames: int, categories: int) -> BatchNeeds:
        """Returns what the active channels fill in for a template that uses their usernames and categories so often."""
        values = {"batch_id": batch_id, "usernames": usernames, "categories": categories}
        [found] = await self.made(connection, "needs_of", values, BatchNeeds)
        return found

    async def page(self, connection: Connection, *, limit: int = PAGE, after: str = "") -> list[Batch]:
        """Returns batches in the order of their ids, beginning after an id."""
        return await self.rows(connection, "list", {"limit": limit, "after": after})
