"""The channels that can't be reached, read within a bound however many channels there are."""

from __future__ import annotations

from dataclasses import dataclass

from jobwire import checks
from jobwire.campaigns.models import Channel
from jobwire.campaigns.store import Store
from jobwire.campaigns.store.table import Connection

MOST = 1000
"""Channels of each kind that are counted."""


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """Channels in trouble, the last changed first. Both numbers stop at MOST."""

    inactive: int
    """Channels that get no messages: five in a row have failed, or the channel has blocked us."""
    failing: int
    """Active channels whose last message failed."""
    channels: tuple[Channel, ...]
    """Some of both kinds, the inactive ones first."""

    @property
    def exact(self) -> bool:
        """False if there are more channels in trouble than were counted."""
        return max(self.inactive, self.failing) < MOST


async def health_of(connection: Connection, store: Store, *, batch: str | None, limit: int) -> ChannelHealth:
    """Reads the health of all channels, or of those of one batch. Half of `limit` goes to each kind, or more if the
    other kind has fewer."""
    checks.whole("limit", limit, minimum=1)
    batch_id = None if batch is None else (await store.batches.get(connection, batch)).id
    inactive = await store.channels.troubled(connection, batch_id=batch_id, active=False, most=MOST)
    failing = await store.channels.troubled(connection, batch_id=batch_id, active=True, most=MOST)
    shown = max(limit - len(failing), limit - limit // 2)
    chosen = [*inactive[:shown], *failing][:limit]
    return ChannelHealth(len(inactive), len(failing), tuple(chosen))
