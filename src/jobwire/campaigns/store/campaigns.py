"""Campaigns: their creation, lists, and changes of state.

A change of state is one UPDATE that names the states it may start from. If it changes nothing, the current state is
read for the error. Counters, progress and completion are changed by the settling of jobs, in the same statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from jobwire import checks
from jobwire.campaigns.errors import NotFound
from jobwire.campaigns.ids import new_id
from jobwire.campaigns.models import Campaign
from jobwire.campaigns.states import CampaignStatus, Ended, IllegalTransition, sources
from jobwire.campaigns.store.sending import MINUTE
from jobwire.campaigns.store.table import PAGE, Connection, Table
from jobwire.errors import InvalidOption

FLOOD_WAIT = "FLOOD_WAIT"
"""The reason of a pause that the transport's limit caused."""
LARGEST = 2**31 - 1
MOST_RETRIES = 1000
"""The highest retry limit. The constraint of the table has the same number."""


@dataclass(frozen=True, slots=True)
class NewCampaign:
    """The checked values of a campaign that does not exist yet."""

    name: str
    batch_id: str
    template_id: str
    params: dict[str, Any]
    mode: str
    delivery_rate: int
    retry_limit: int
    description: str | None = None
    created_by_id: str | None = None


class Campaigns(Table[Campaign]):
    """The table `campaigns`."""

    kind = "campaign"
    name = "campaigns"
    row = Campaign

    async def add(self, connection: Connection, new: NewCampaign) -> Campaign:
        """Adds a campaign that is QUEUED."""
        values = {
            "id": new_id(),
            "name": new.name,
            "description": new.description,
            "batch_id": new.batch_id,
            "template_id": new.template_id,
            "params": Jsonb(new.params),
            "mode": new.mode,
            "delivery_rate": new.delivery_rate,
            "retry_limit": new.retry_limit,
            "created_by_id": new.created_by_id,
        }
        [made] = await self.rows(connection, "add", values)
        return made

    async def page(
        self, connection: Connection, *, status: CampaignStatus | None = None, limit: int = PAGE, after: str = ""
    ) -> list[Campaign]:
        """Returns campaigns in the order of their ids, beginning after an id: all, or those in one state."""
        return await self.rows(connection, "list", {"status": status, "limit": limit, "after": after})

    async def newest(
        self, connection: Connection, *, unfinished: bool = False, limit: int = PAGE, before: str = ""
    ) -> list[Campaign]:
        """Returns campaigns, the newest first, beginning before an id: all, or those that have not ended."""
        statement = "newest_unfinished" if unfinished else "newest"
        return await self.rows(connection, statement, {"limit": limit, "before": before or None})

    async def start(self, connection: Connection, campaign_id: str) -> Campaign:
        """QUEUED becomes RUNNING. Of several callers, one succeeds."""
        values = {"id": campaign_id, "sources": [CampaignStatus.QUEUED.value]}
        return await self._change(connection, "start", values, CampaignStatus.RUNNING)

    async def pause(self, connection: Connection, campaign_id: str, reason: str | None = None) -> Campaign:
        """RUNNING becomes PAUSED until `resume`. A campaign that waits for the end of a flood limit then waits for
        `resume` too."""
        if reason is not None:
            checks.maybe_empty("reason", reason)
        values = {"id": campaign_id, "sources": sources(CampaignStatus.PAUSED), "reason": reason}
        return await self._change(connection, "pause", values, CampaignStatus.PAUSED)

    async def wait_for_flood(self, connection: Connection, campaign_id: str, seconds: float) -> Campaign | None:
        """RUNNING becomes PAUSED for a time. A wait that is under way is made longer, never shorter. Returns None, and
        changes nothing, if the campaign is not running: a person has paused it, or it has ended."""
        values = {
            "id": campaign_id,
            "sources": sources(CampaignStatus.PAUSED),
            "seconds": checks.seconds("seconds", seconds),
            "reason": FLOOD_WAIT,
        }
        return await self.one(connection, "wait_for_flood", values)

    async def resume(self, connection: Connection, campaign_id: str) -> Campaign:
        """PAUSED becomes RUNNING."""
        values = {"id": campaign_id, "sources": [CampaignStatus.PAUSED.value]}
        return await self._change(connection, "resume", values, CampaignStatus.RUNNING)

    async def resume_due(self, connection: Connection) -> list[Campaign]:
        """Resumes every campaign whose time of waiting is over. Returns those that this call has resumed."""
        return await self.rows(connection, "resume_due", {})

    async def next_resume(self, connection: Connection) -> datetime | None:
        """Returns the time at which the next paused campaign resumes by itself."""
        [(moment,)] = await self.tuples(connection, "next_resume", {})
        return moment

    async def any_open(self, connection: Connection) -> bool:
        """Returns True if a campaign is RUNNING, or PAUSED until a time."""
        [(found,)] = await self.tuples(connection, "any_open", {})
        return found

    async def cancel(self, connection: Connection, campaign_id: str) -> Campaign:
        """QUEUED, RUNNING or PAUSED becomes CANCELLED. Jobs that are not claimed yet stay QUEUED and are never sent."""
        values = {"id": campaign_id, "sources": sources(CampaignStatus.CANCELLED)}
        return await self._change(connection, "cancel", values, CampaignStatus.CANCELLED)

    async def fail(self, connection: Connection, campaign_id: str, error: str) -> Campaign:
        """RUNNING becomes FAILED, by an error of the campaign itself and not of one message."""
        values = {"id": campaign_id, "sources": sources(CampaignStatus.FAILED), "error": error or "unknown"}
        return await self._change(connection, "fail", values, CampaignStatus.FAILED)

    async def fail_if_running(self, connection: Connection, campaign_id: str, error: str) -> Campaign | None:
        """RUNNING becomes FAILED. Returns None, and changes nothing, if the campaign does not run."""
        values = {"id": campaign_id, "sources": sources(CampaignStatus.FAILED), "error": error or "unknown"}
        return await self.one(connection, "fail", values)

    async def set_rate(self, connection: Connection, campaign_id: str, rate: int) -> Campaign:
        """Changes the delivery rate, in messages per minute, of a campaign that has not ended."""
        values = {
            "id": campaign_id,
            "sources": sources(CampaignStatus.CANCELLED),
            "rate": bounded("rate", rate, minimum=1),
            "minute": MINUTE,
        }
        changed = await self.one(connection, "set_rate", values)
        if changed is None:
            raise Ended(f"campaign {campaign_id!r}", await self._status(connection, campaign_id))
        return changed

    async def _change(
        self, connection: Connection, statement: str, values: dict[str, Any], wanted: CampaignStatus
    ) -> Campaign:
        changed = await self.one(connection, statement, values)
        if changed is None:
            current = await self._status(connection, values["id"])
            raise IllegalTransition(f"campaign {values['id']!r}", current, wanted)
        return changed

    async def _status(self, connection: Connection, campaign_id: str) -> CampaignStatus:
        found = await self.tuples(connection, "status", {"id": campaign_id})
        if not found:
            raise NotFound(self.kind, campaign_id)
        return CampaignStatus(found[0][0])


def bounded(field: str, value: Any, *, minimum: int, maximum: int = LARGEST) -> int:
    """Returns an integer that a column can hold."""
    if isinstance(value, int) and value > maximum:
        raise InvalidOption(field, value, f"must be at most {maximum}")
    return checks.whole(field, value, minimum=minimum)
