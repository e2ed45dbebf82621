"""The progress of sending: how many of a campaign's messages are in the queue, and when the next may be sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from jobwire.campaigns.models import FeedPlan, Grant, RunningCampaign
from jobwire.campaigns.store.table import Connection, Table

MINUTE = 60.6
"""Seconds in which the delivery rate of a minute is sent. With `CREDIT` it keeps every 60 seconds at or below the rate,
also if a message is sent some tenths of a second after its slot."""
CREDIT = 0.3
"""Seconds for which time that was not used can be made up for."""
_LOCK = 1_785_684_600
"""The first half of the advisory lock's key. The second is a hash of the campaign's id."""


class SendingProgress(Table[RunningCampaign]):
    """The table `campaign_sending`."""

    kind: ClassVar[str] = "campaign"
    name: ClassVar[str] = "sending"
    row = RunningCampaign

    async def running(self, connection: Connection) -> list[RunningCampaign]:
        """Returns the campaigns that are RUNNING."""
        return await self.rows(connection, "running", {})

    async def try_lock(self, connection: Connection, campaign_id: str) -> bool:
        """Returns True if this transaction may prepare or feed the campaign. False: another one does so now."""
        values = {"lock": _LOCK, "schema": self.schema, "campaign_id": campaign_id}
        [(locked, _)] = await self.tuples(connection, "try_lock", values)
        return locked

    async def plan(self, connection: Connection, campaign_id: str) -> FeedPlan | None:
        """Returns what the next messages of a campaign need. None if it is not RUNNING or has no jobs yet."""
        found = await self.made(connection, "plan", {"campaign_id": campaign_id}, FeedPlan)
        return found[0] if found else None

    async def is_prepared(self, connection: Connection, campaign_id: str) -> bool:
        """Returns True if the jobs of a campaign were created."""
        [(found,)] = await self.tuples(connection, "is_prepared", {"campaign_id": campaign_id})
        return found

    async def ensure(self, connection: Connection, campaign_ids: Sequence[str]) -> None:
        """Adds the rows of campaigns that have none yet."""
        await self.change(connection, "ensure", {"ids": list(campaign_ids)})

    async def set_prepared(self, connection: Connection, campaign_id: str) -> None:
        """Records that the jobs of a campaign were created."""
        await self.change(connection, "prepared", {"campaign_id": campaign_id})

    async def set_fed_until(self, connection: Connection, campaign_id: str, until: datetime) -> None:
        """Records the time up to which the campaign's messages are in the queue."""
        await self.change(connection, "fed", {"campaign_id": campaign_id, "until": until})

    async def reserve(self, connection: Connection, wanted: Mapping[str, int], *, ahead: float) -> dict[str, Grant]:
        """Reserves slots of the delivery rates of campaigns, those that begin within `ahead` seconds. Returns them by
        campaign. A campaign that does not exist is left out."""
        found = await self._reserve(connection, wanted, ahead)
        missing = [campaign_id for campaign_id in wanted if campaign_id not in found]
        if missing:
            await self.ensure(connection, missing)
            found |= await self._reserve(connection, {one: wanted[one] for one in missing}, ahead)
        return found

    async def _reserve(self, connection: Connection, wanted: Mapping[str, int], ahead: float) -> dict[str, Grant]:
        values: dict[str, Any] = {
            "ids": list(wanted),
            "counts": list(wanted.values()),
            "ahead": ahead,
            "credit": CREDIT,
            "minute": MINUTE,
        }
        return {grant.campaign_id: grant for grant in await self.made(connection, "reserve", values, Grant)}
