"""Keeps campaigns going: resumes, repairs, prepares and feeds them. Every worker does so, and any one is enough.

Whatever a crash left behind is found again here: claims of workers that died, messages that the queue has lost,
campaigns whose start was interrupted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence

from jobwire.campaigns.connections import Connections
from jobwire.campaigns.errors import NotFound
from jobwire.campaigns.models import Settled
from jobwire.campaigns.sending.feed import AT_ONCE, Feeder
from jobwire.campaigns.states import JobStatus
from jobwire.campaigns.store import Store
from jobwire.campaigns.store.table import Connection
from jobwire.errors import JobwireError

logger = logging.getLogger("jobwire.campaigns")

EVERY = 1.0
REPAIR_EVERY = 15.0


class Upkeep:
    """Runs until it is cancelled. `lost_after`: seconds after which a claim is taken for that of a dead worker, or a
    message in the queue for a lost one."""

    def __init__(self, store: Store, connections: Connections, feeder: Feeder, *, lost_after: float) -> None:
        self._store = store
        self._connections = connections
        self._feeder = feeder
        self._lost_after = lost_after
        self._wanted = asyncio.Event()
        self._repaired = float("-inf")

    def wake(self) -> None:
        """Has the next round begin at once."""
        self._wanted.set()

    async def run(self) -> None:
        """Makes a round every second, and at once after `wake`. An error is logged, and the next round tries again."""
        while True:
            self._wanted.clear()
            more = False
            try:
                more = await self.round()
            except JobwireError as error:
                logger.warning("campaigns can't be fed, which is tried again: %s", error)
            except Exception:
                logger.exception("campaigns can't be fed, which is tried again")
            if not more:
                await _wait(self._wanted, EVERY)

    async def round(self) -> bool:
        """Does what is due. Returns True if there is more to feed at once."""
        async with self._connections.use() as connection:
            for campaign in await self._store.campaigns.resume_due(connection):
                logger.info("campaign %s (%s) goes on: its wait is over", campaign.id, campaign.name)
            running = await self._store.sending.running(connection)
        if time.monotonic() - self._repaired >= min(REPAIR_EVERY, self._lost_after):
            await self._repair()
            self._repaired = time.monotonic()
        more = False
        for campaign in running:
            try:
                if campaign.prepared or await self._feeder.prepare(campaign.campaign_id):
                    more |= await self._feeder.feed(campaign.campaign_id) >= AT_ONCE
            except NotFound:  # deleted in the meantime
                continue
            except JobwireError as error:
                logger.warning("campaign %s can't be fed: %s", campaign.campaign_id, error)
        return more

    async def _repair(self) -> None:
        async with self._connections.use() as connection:
            await self._check(connection)
            swept = await self._store.jobs.sweep(connection, self._lost_after)
            if swept:
                logger.warning("%d messages were being sent by a worker that is gone; they are tried again", len(swept))
            _warn_of_lost(await self._store.jobs.unfeed_overdue(connection, self._lost_after))

    async def _check(self, connection: Connection) -> None:
        """Marks fed messages that were not sent in time. A campaign that is being fed at this moment has to wait."""
        while campaign_ids := await self._store.jobs.unchecked(connection, self._lost_after):
            for campaign_id in campaign_ids:
                async with connection.transaction():
                    if not await self._store.sending.try_lock(connection, campaign_id):
                        return
                    marked = await self._store.jobs.check(connection, campaign_id, self._lost_after)
                _warn_of_lost([one for one in marked if one.status is JobStatus.QUEUED])


def _warn_of_lost(lost: Sequence[Settled]) -> None:
    for campaign_id, count in Counter(one.campaign_id for one in lost).items():
        logger.warning("campaign %s: %d messages were lost in the queue and are fed again", campaign_id, count)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
