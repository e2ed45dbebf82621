"""The report of a campaign: the outcomes of its messages, and the reasons of failures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobwire import checks
from jobwire.campaigns.models import Campaign
from jobwire.campaigns.store import Store
from jobwire.campaigns.store.table import PAGE, Connection


@dataclass(frozen=True, slots=True)
class Reason:
    """A kind of failure: the code at the beginning of its messages, how many there are, and one of them."""

    reason: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of a campaign by state, and the times of the first and the last message that was sent."""

    queued: int
    sending: int
    sent: int
    failed: int
    attempts: int
    retried: int
    """Messages that took more than one attempt."""
    first_sent_at: datetime | None
    last_sent_at: datetime | None
    busiest_minute: int
    """The most messages sent in one minute of the clock."""


@dataclass(frozen=True, slots=True)
class CampaignReport:
    """A campaign and what became of its messages. Rows that were purged are in the campaign's counters only."""

    campaign: Campaign
    counts: Counts
    reasons: tuple[Reason, ...]

    @property
    def per_minute(self) -> float | None:
        """Messages per minute between the first and the last. None if there are not two of them."""
        first, last = self.counts.first_sent_at, self.counts.last_sent_at
        if first is None or last is None or last <= first:
            return None
        return (self.counts.sent - 1) * 60 / (last - first).total_seconds()


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message: who was to get it, and whether they did."""

    job_id: str
    channel_id: str
    username: str | None
    status: str
    attempts: int
    sent_at: datetime | None
    failed_at: datetime | None
    error_message: str | None


async def report_of(connection: Connection, store: Store, campaign: str) -> CampaignReport:
    """Reads the report of a campaign, given by id or name."""
    found = await store.campaigns.get(connection, campaign)
    values = {"campaign_id": found.id}
    [counts] = await store.jobs.made(connection, "report_counts", values, Counts)
    reasons = await store.jobs.made(connection, "report_reasons", values, Reason)
    return CampaignReport(found, counts, tuple(reasons))


async def failure_reasons(connection: Connection, store: Store, campaign: str, *, most: int) -> list[Reason]:
    """Counts up to `most` failed messages of a campaign by reason, the most frequent first."""
    found = await store.campaigns.get(connection, campaign)
    values = {"campaign_id": found.id, "most": checks.whole("most", most, minimum=1)}
    async with connection.transaction():
        await store.jobs.walk_indexes(connection)
        return await store.jobs.made(connection, "failure_reasons", values, Reason)


async def deliveries(
    connection: Connection, store: Store, campaign: str, *, limit: int = PAGE, after: str = ""
) -> list[Delivery]:
    """Returns messages of a campaign in the order of their ids, beginning after an id."""
    found = await store.campaigns.get(connection, campaign)
    values = {"campaign_id": found.id, "limit": checks.whole("limit", limit, minimum=1), "after": after}
    return await store.jobs.made(connection, "deliveries", values, Delivery)
