"""Everything that a person does with campaigns, as methods of one object. The command line and the HTTP API call it.

    async with CampaignService("postgresql://localhost/app") as campaigns:
        await campaigns.init()
        await campaigns.import_channels("channels.csv", batch="news")
        await campaigns.add_template("hello", "Hello {username}!")
        await campaigns.create("spring", batch="news", template="hello", rate=60)
        await campaigns.start("spring")
        print(await campaigns.status("spring"))

Campaigns, batches, templates and users are given by id or by name. A method that changes something does so in one
transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jobwire.campaigns import create as creating
from jobwire.campaigns.channel_health import ChannelHealth, health_of
from jobwire.campaigns.channels_import import ImportReport, OnBad, Progress, import_channels
from jobwire.campaigns.connections import Connections
from jobwire.campaigns.create import Preview
from jobwire.campaigns.database import DatabaseSettings
from jobwire.campaigns.models import Batch, Campaign, Channel, Template
from jobwire.campaigns.report import CampaignReport, Delivery, Reason, deliveries, failure_reasons, report_of
from jobwire.campaigns.schema.install import InitReport, init, require_tables
from jobwire.campaigns.sending.queues import PGBOSS, CampaignQueues
from jobwire.campaigns.states import CampaignStatus, Ended, IllegalTransition
from jobwire.campaigns.store import store_of
from jobwire.campaigns.store.batches import BatchChannels
from jobwire.campaigns.store.table import PAGE, Connection
from jobwire.checks import Seconds, seconds


class CampaignService:
    """The campaigns of one database. `schema` is that of the campaign tables, `queue_schema` that of pg-boss's."""

    def __init__(
        self, url: str, *, schema: str | None = None, queue_schema: str = PGBOSS, connections: int = 4
    ) -> None:
        self.settings = DatabaseSettings.parse(url, schema)
        self._schema = self.settings.schema
        self._store = store_of(self._schema)
        self._connections = Connections(self.settings, most=connections)
        self._queues = CampaignQueues(self.settings, queue_schema)
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._connections)
            await stack.enter_async_context(self._queues)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def init(self) -> InitReport:
        """Creates or upgrades the tables and the two queues. A second call changes nothing."""
        async with self._connections.use() as connection:
            report = await init(connection, schema=self._schema)
        await self._queues.install()
        return replace(report, notes=await self._queues.upgrade())

    async def check(self) -> None:
        """Raises NotInstalled if the tables do not exist or are those of an older release, and NewerSchema."""
        async with self._connections.use() as connection:
            await require_tables(connection, self._schema)

    # Channels, templates and campaigns ------------------------------------------------------------------------------

    async def import_channels(
        self,
        file: str | Path,
        *,
        batch: str | None = None,
        skip_bad: bool = False,
        on_bad: OnBad | None = None,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Imports a CSV file of channels. See `jobwire.campaigns.import_channels`."""
        async with self._connections.use() as connection:
            return await import_channels(
                connection, Path(file), batch=batch, skip_bad=skip_bad, on_bad=on_bad, progress=progress,
                schema=self._schema,
            )  # fmt: skip

    async def add_template(
        self, name: str, content: str, *, media_type: str | None = None, media_url: str | None = None
    ) -> Template:
        """Adds a template. See `jobwire.campaigns.add_template`."""
        async with self._connections.use() as connection:
            return await creating.add_template(
                connection, name, content, media_type=media_type, media_url=media_url, schema=self._schema
            )

    async def create(
        self,
        name: str,
        *,
        batch: str,
        template: str,
        rate: int,
        params: Mapping[str, Any] | None = None,
        mode: str = "TEST",
        retry_limit: int = 3,
        description: str | None = None,
        created_by: str | None = None,
    ) -> Campaign:
        """Creates a campaign that is QUEUED. See `jobwire.campaigns.create_campaign`."""
        async with self._connections.use() as connection:
            return await creating.create_campaign(
                connection, name, batch=batch, template=template, rate=rate, params=params, mode=mode,
                retry_limit=retry_limit, description=description, created_by=created_by, schema=self._schema,
            )  # fmt: skip

    async def preview(self, campaign: str, *, limit: int = 3) -> list[Preview]:
        """Returns the messages that the first channels of a campaign would receive."""
        async with self._connections.use() as connection:
            return await creating.preview(connection, campaign, limit=limit, schema=self._schema)

    # Running --------------------------------------------------------------------------------------------------------

    async def start(self, campaign: str, *, user: str | None = None) -> Campaign:
        """QUEUED becomes RUNNING, and the workers begin to send. Of several callers, one succeeds; the others get
        IllegalTransition."""
        async with (
            self._connections.use() as connection,
            connection.transaction(),
            self._changing(connection, campaign) as found,
        ):
            started = await self._store.campaigns.start(connection, found.id)
            await self._queues.add_start(connection, found.id, user)
            return started

    async def pause(self, campaign: str, *, reason: str | None = None) -> Campaign:
        """RUNNING becomes PAUSED until `resume`. Messages that are being sent at this moment are still sent."""
        async with (
            self._connections.use() as connection,
            connection.transaction(),
            self._changing(connection, campaign) as found,
        ):
            return await self._store.campaigns.pause(connection, found.id, reason)

    async def resume(self, campaign: str) -> Campaign:
        """PAUSED becomes RUNNING."""
        async with (
            self._connections.use() as connection,
            connection.transaction(),
            self._changing(connection, campaign) as found,
        ):
            return await self._store.campaigns.resume(connection, found.id)

    async def cancel(self, campaign: str) -> Campaign:
        """Ends a campaign for good. Messages that are not sent yet never are."""
        async with (
            self._connections.use() as connection,
            connection.transaction(),
            self._changing(connection, campaign) as found,
        ):
            return await self._store.campaigns.cancel(connection, found.id)

    async def set_rate(self, campaign: str, rate: int) -> Campaign:
        """Changes the delivery rate, in messages per minute, of a campaign that has not ended."""
        async with (
            self._connections.use() as connection,
            connection.transaction(),
            self._changing(connection, campaign) as found,
        ):
            return await self._store.campaigns.set_rate(connection, found.id, rate)

    # Looking --------------------------------------------------------------------------------------------------------

    async def status(self, campaign: str) -> Campaign:
        """Returns a campaign with its counters."""
        async with self._connections.use() as connection:
            return await self._store.campaigns.get(connection, campaign)

    async def report(self, campaign: str) -> CampaignReport:
        """Returns what became of a campaign's messages: counts, failures by reason, rates."""
        async with self._connections.use() as connection:
            return await report_of(connection, self._store, campaign)

    async def deliveries(self, campaign: str, *, limit: int = PAGE, after: str = "") -> list[Delivery]:
        """Returns who got what: a page of the messages of a campaign with their channels, in the order of their ids,
        beginning after an id."""
        async with self._connections.use() as connection:
            return await deliveries(connection, self._store, campaign, limit=limit, after=after)

    async def campaigns(
        self, *, status: CampaignStatus | None = None, limit: int = PAGE, after: str = ""
    ) -> list[Campaign]:
        """Returns a page of campaigns in the order of their ids, which is that of their creation."""
        async with self._connections.use() as connection:
            return await self._store.campaigns.page(connection, status=status, limit=limit, after=after)

    async def newest(self, *, unfinished: bool = False, limit: int = PAGE, before: str = "") -> list[Campaign]:
        """Returns a page of campaigns, the newest first, beginning before an id: all, or those that have not ended."""
        async with self._connections.use() as connection:
            return await self._store.campaigns.newest(connection, unfinished=unfinished, limit=limit, before=before)

    async def failure_reasons(self, campaign: str, *, most: int = 10_000) -> list[Reason]:
        """Counts failed messages of a campaign by reason, as `report` does, but reads no more than `most` of them."""
        async with self._connections.use() as connection:
            return await failure_reasons(connection, self._store, campaign, most=most)

    async def channel_health(self, *, batch: str | None = None, limit: int = 12) -> ChannelHealth:
        """Returns the channels that are inactive or whose last message failed: of all, or of one batch."""
        async with self._connections.use() as connection:
            return await health_of(connection, self._store, batch=batch, limit=limit)

    async def channels(
        self, *, batch: str | None = None, active: bool | None = None, limit: int = PAGE, after: str = ""
    ) -> list[Channel]:
        """Returns a page of channels in the order of their ids: all, those of a batch, or by their state."""
        async with self._connections.use() as connection:
            batch_id = None if batch is None else (await self._store.batches.get(connection, batch)).id
            return await self._store.channels.page(
                connection, batch_id=batch_id, active=active, limit=limit, after=after
            )

    async def activate_channel(self, channel: str) -> Channel:
        """Makes a channel active again, with no errors. It is given by id or username."""
        async with self._connections.use() as connection, connection.transaction():
            found = await self._store.channels.get(connection, channel)
            return await self._store.channels.activate(connection, found.id) or found

    async def templates(self, *, limit: int = PAGE, after: str = "") -> list[Template]:
        """Returns a page of templates in the order of their ids."""
        async with self._connections.use() as connection:
            return await self._store.templates.page(connection, limit=limit, after=after)

    async def batches(self, *, limit: int = PAGE, after: str = "") -> list[Batch]:
        """Returns a page of batches in the order of their ids."""
        async with self._connections.use() as connection:
            return await self._store.batches.page(connection, limit=limit, after=after)

    async def count_channels(self, batch: str) -> BatchChannels:
        """Returns the number of channels in a batch, and how many of them are active."""
        async with self._connections.use() as connection:
            found = await self._store.batches.get(connection, batch)
            return await self._store.batches.count(connection, found.id)

    async def purge(self, *, sent_before: datetime | Seconds) -> int:
        """Deletes the rows of messages that were sent before a time, or longer ago than a duration. Counters stay.
        Returns how many were deleted."""
        if not isinstance(sent_before, datetime):
            sent_before = datetime.now(UTC) - timedelta(seconds=seconds("sent_before", sent_before))
        async with self._connections.use() as connection:
            return await self._store.jobs.purge(connection, sent_before)

    async def count_sent(self, *, before: datetime) -> int:
        """Returns how many messages were sent before a time and not purged yet."""
        async with self._connections.use() as connection:
            return await self._store.jobs.count_sent_before(connection, before)

    @contextlib.asynccontextmanager
    async def _changing(self, connection: Connection, campaign: str) -> AsyncGenerator[Campaign]:
        """Yields a campaign that is about to change. If it can't, the error has its name."""
        found = await self._store.campaigns.get(connection, campaign)
        try:
            yield found
        except IllegalTransition as error:
            raise IllegalTransition(f"campaign {found.name!r}", error.current, error.wanted) from None
        except Ended as error:
            raise Ended(f"campaign {found.name!r}", error.current) from None
