"""Holds the delivery rate of each campaign, however many workers send its messages.

A message waits for a slot before it is claimed. Slots are reserved in the database, one step apart, so they are shared
by all workers. Messages of one process that arrive together reserve theirs in one statement, and at a high rate those
of the next milliseconds as well. A slot that is not used is lost: the rate is never made up for later. So a message
whose claim took long, since the database was held up, needs another slot before it is sent (`is_late`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jobwire.campaigns.connections import Connections
from jobwire.campaigns.models import Grant
from jobwire.campaigns.store import Store
from jobwire.coalesce import Coalescer

AHEAD = 2.0
"""Seconds that a message waits for its slot in the worker. With a longer wait it gives up its place in the queue."""
LATEST = 0.25
"""Seconds after a slot, or after it was given, at which it can still be used. With the credit it is less than what the
planned minute has beyond a minute."""
_AT_ONCE = 50
_SPARE = 2000
"""Slots that are reserved for messages to come, at most those of `_SPARE_TIME`."""
_SPARE_TIME = 0.02
_KEPT = 0.1
"""Seconds for which reserved slots can be used."""


@dataclass(slots=True)
class _Spare:
    """Reserved slots of a campaign that no message has taken yet. `next` is the time of the first one, and `until` the
    time at which all are lost."""

    step: float
    next: float
    left: int
    until: float

    def take(self) -> float | None:
        """Returns the seconds to the next slot, None if there is none."""
        now = time.monotonic()
        if not self.left or now > self.until:
            return None
        self.left -= 1
        self.next += self.step
        return self.next - self.step - now


def is_late(slot: float) -> bool:
    """Returns True if a slot is too long ago to be used."""
    return time.monotonic() - slot > LATEST


class DeliveryRate:
    """Gives messages their slots: `await rate.slot(campaign_id)`."""

    def __init__(self, store: Store, connections: Connections) -> None:
        self._store = store
        self._connections = connections
        self._asked: Coalescer[str, float | None] = Coalescer(self._reserve, _AT_ONCE, together=True)
        self._spare: dict[str, _Spare] = {}

    async def slot(self, campaign_id: str) -> float | None:
        """Waits for a slot of the campaign and returns its time, by the monotonic clock, or None at once if none is
        near."""
        spare = self._spare.get(campaign_id)
        wait = None if spare is None else spare.take()
        if wait is None:
            wait = await self._asked.put(campaign_id)
        if wait is None:
            return None
        time_of_slot = time.monotonic() + max(wait, 0.0)
        if wait > 0:
            await asyncio.sleep(wait)
        return time_of_slot

    async def _reserve(self, campaign_ids: Sequence[str]) -> Sequence[float | None]:
        """Returns the seconds to each slot, None if it is not near."""
        asked = Counter(campaign_ids)
        wanted = {one: count + self._more(one) for one, count in asked.items()}
        async with self._connections.use() as connection:
            grants = await self._store.sending.reserve(connection, wanted, ahead=AHEAD)
        given: Counter[str] = Counter()
        waits: list[float | None] = []
        for campaign_id in campaign_ids:
            waits.append(_wait(grants.get(campaign_id), given[campaign_id]))
            given[campaign_id] += 1
        for campaign_id, count in asked.items():
            self._keep(campaign_id, grants.get(campaign_id), count)
        return waits

    def _more(self, campaign_id: str) -> int:
        """Returns how many slots to reserve for messages to come."""
        spare = self._spare.get(campaign_id)
        return 0 if spare is None else min(_SPARE, int(_SPARE_TIME / spare.step))

    def _keep(self, campaign_id: str, grant: Grant | None, used: int) -> None:
        """Keeps the slots that were reserved beyond those used, and the step of a campaign with a high rate."""
        if grant is None or grant.step > _SPARE_TIME:
            self._spare.pop(campaign_id, None)
            return
        now = time.monotonic()
        first = now + grant.wait + used * grant.step
        self._spare[campaign_id] = _Spare(grant.step, first, max(grant.slots - used, 0), now + _SPARE_TIME + _KEPT)


def _wait(grant: Grant | None, place: int) -> float | None:
    if grant is None:
        return 0.0  # the campaign is gone, and so is its job: nothing will be sent
    return grant.wait + place * grant.step if place < grant.slots else None
