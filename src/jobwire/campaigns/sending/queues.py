"""The two queues, as pg-boss keeps them in the database of the campaigns.

Their names, payloads and options are those of the application that the tables come from, so a Node.js producer or
worker can take either side.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from jobwire.backends.pgboss import Boss
from jobwire.campaigns.database import DatabaseSettings, check_schema
from jobwire.connection import Connection, connect
from jobwire.errors import Closed
from jobwire.model import State
from jobwire.options import Backoff, NewJob, Unique
from jobwire.queue import Queue

START = "start-campaign"
SEND = "send-message"
PGBOSS = "pgboss"
"""The schema of pg-boss's tables, unless another is named."""

DAY = 86400
KEPT = 37 * DAY
"""Seconds for which the queues keep a finished job."""
WAITING = 365 * DAY
"""Seconds for which a job may wait in a queue. pg-boss deletes it after 14 days otherwise."""
RETRY_DELAY = 5
EXPIRES = 15 * 60
HEARTBEAT = 60

_START_SETTINGS: dict[str, Any] = {
    "policy": "exclusive",  # one job per campaign, until it has finished
    "retryLimit": 0,
    "notify": True,
}
_SEND_SETTINGS: dict[str, Any] = {
    "policy": "standard",
    "retryDelay": RETRY_DELAY,
    "retryBackoff": True,
    "heartbeatSeconds": HEARTBEAT,
    "notify": True,
}
_COMMON: dict[str, Any] = {"expireInSeconds": EXPIRES, "retentionSeconds": WAITING, "deleteAfterSeconds": KEPT}


def queue_url(settings: DatabaseSettings, schema: str = PGBOSS) -> str:
    """Returns the URL of the queues in a database."""
    parts = urlsplit(settings.url)
    options = [*parse_qsl(parts.query, keep_blank_values=True), ("schema", check_schema(schema))]
    return f"pgboss+{parts.scheme}://{parts.netloc}{parts.path}?{urlencode(options)}"


class CampaignQueues:
    """Adds jobs to the two queues. `settings` names the database, `schema` that of pg-boss."""

    def __init__(self, settings: DatabaseSettings, schema: str = PGBOSS) -> None:
        self.url = queue_url(settings, schema)
        self._connection: Connection | None = None

    async def __aenter__(self) -> Self:
        self._connection = connect(self.url)
        self._start = Queue(START, self._connection)
        self._send = Queue(SEND, self._connection)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()

    async def install(self) -> None:
        """Creates pg-boss's tables and the two queues, if they are missing. What exists is left as it is."""
        if self._connection is None:
            raise Closed
        await self._connection.open()
        boss = Boss(self._connection)
        await boss.create_queue(START, **_START_SETTINGS, **_COMMON)
        await boss.create_queue(SEND, **_SEND_SETTINGS, **_COMMON)

    async def upgrade(self) -> tuple[str, ...]:
        """Brings queues that another program made to what campaigns need, and returns a note for each thing that can't
        be changed.

        Jobs that are added later are kept for as long as ours, and starts are not retried unless a job has a limit of
        its own. Nothing else is changed: retries and heartbeats of `send-message` may be what workers of that program
        expect, and our messages have their own."""
        if self._connection is None:
            raise Closed
        boss = Boss(self._connection)
        found = {queue.name: queue for queue in await boss.queues()}
        notes: list[str] = []
        for name, policy in ((START, "exclusive"), (SEND, "standard")):
            queue = found[name]
            changes = _longer(queue.raw)
            if name == START and queue.raw["retry_limit"]:
                changes["retryLimit"] = 0
            if changes:
                await boss.update_queue(name, **changes)
            if queue.policy != policy:
                notes.append(
                    f"queue {name} has the policy {queue.policy} instead of {policy}, which can't be changed; "
                    "campaigns work with it"
                )
        return tuple(notes)

    async def add_start(self, transaction: Any, campaign_id: str, user_id: str | None = None) -> None:
        """Adds the job that starts a campaign, in the caller's transaction. The queue keeps one job per campaign."""
        data = {"campaignId": campaign_id} | ({"userId": user_id} if user_id else {})
        await self._start.add(data, unique=Unique(campaign_id), transaction=transaction)

    async def starts_waiting(self) -> bool:
        """Returns True if a job of `start-campaign` waits or runs."""
        counts = await self._start.counts()
        return any(counts[state] for state in (State.WAITING, State.ACTIVE))

    async def add_messages(self, transaction: Any, jobs: list[NewJob]) -> None:
        """Adds messages to the queue, in the caller's transaction."""
        await self._send.add_many(jobs, transaction=transaction)


def _longer(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the times of a queue that are too short. 0 means without limit."""
    return {
        setting: least
        for setting, column, least in (
            ("retentionSeconds", "retention_seconds", WAITING),
            ("deleteAfterSeconds", "deletion_seconds", KEPT),
        )
        if 0 < row[column] < least
    }


def message_options(retry_limit: int) -> dict[str, Any]:
    """Returns the options of a job of `send-message`."""
    return {"attempts": retry_limit + 1, "backoff": Backoff.exponential(RETRY_DELAY), "timeout": EXPIRES}
