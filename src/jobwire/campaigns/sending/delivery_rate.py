"""Holds the delivery rate of each campaign, however many workers send its messages.

A message waits for a slot before it is claimed. Slots are reserved in the database, one step apart, so they are shared
by all workers. Messages of one process that arrive together reserve theirs in one statement. A slot that is not used
is lost: the rate is never made up for later.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from jobwire.campaigns.connections import Connections
from jobwire.campaigns.models import Grant
from jobwire.campaigns.store import Store
from jobwire.coalesce import Coalescer

AHEAD = 2.0
"""Seconds that a message waits for its slot in the worker. With a longer wait it gives up its place in the queue."""
_AT_ONCE = 50


class DeliveryRate:
    """Gives messages their slots: `await rate.slot(campaign_id)`."""

    def __init__(self, store: Store, connections: Connections) -> None:
        self._store = store
        self._connections = connections
        self._asked: Coalescer[str, float | None] = Coalescer(self._reserve, _AT_ONCE, together=True)

    async def slot(self, campaign_id: str) -> bool:
        """Returns True when a slot of the campaign is reached, or False at once if none is near."""
        wait = await self._asked.put(campaign_id)
        if wait is None:
            return False
        if wait > 0:
            await asyncio.sleep(wait)
        return True

    async def _reserve(self, campaign_ids: Sequence[str]) -> Sequence[float | None]:
        """Returns the seconds to each slot, None if it is not near."""
        async with self._connections.use() as connection:
            grants = await self._store.sending.reserve(connection, Counter(campaign_ids), ahead=AHEAD)
        given: Counter[str] = Counter()
        waits: list[float | None] = []
        for campaign_id in campaign_ids:
            waits.append(_wait(grants.get(campaign_id), given[campaign_id]))
            given[campaign_id] += 1
        return waits


def _wait(grant: Grant | None, place: int) -> float | None:
    if grant is None:
        return 0.0  # the campaign is gone, and so is its job: nothing will be sent
    return grant.wait + place * grant.step if place < grant.slots else None
