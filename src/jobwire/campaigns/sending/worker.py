"""The worker of campaigns: starts them, keeps them going, and sends their messages.

    async with CampaignWorker("postgresql://localhost/app", "outbox:./out.jsonl") as worker:
        await worker.run()

Any number of workers can share a database. Each has its own transport, and together they hold the delivery rates.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Any, Self

from jobwire import checks
from jobwire.campaigns.connections import Connections
from jobwire.campaigns.database import DatabaseSettings
from jobwire.campaigns.errors import NotFound
from jobwire.campaigns.schema.install import require_tables
from jobwire.campaigns.sending.deliver import Delivery
from jobwire.campaigns.sending.feed import Feeder
from jobwire.campaigns.sending.payload import StartCampaign
from jobwire.campaigns.sending.queues import PGBOSS, SEND, START, CampaignQueues
from jobwire.campaigns.sending.upkeep import Upkeep
from jobwire.campaigns.states import CampaignStatus, IllegalTransition
from jobwire.campaigns.store import store_of
from jobwire.campaigns.transports import DEFAULT, Sender, Transport, transport_of
from jobwire.campaigns.transports.sender import SEND_TIMEOUT
from jobwire.errors import StoreUnavailable
from jobwire.worker import QueueHandler, Worker
from jobwire.worker.active import ActiveJob

logger = logging.getLogger("jobwire.campaigns")

_LOOK_EVERY = 0.3
_FEED_AFTER = 1000
"""Settled messages after which the queue is fed at once. Unthrottled campaigns would wait for the next second."""


class CampaignWorker:
    """Sends the messages of campaigns through a transport, given as an address or as an object."""

    def __init__(
        self,
        url: str,
        transport: str | Transport = DEFAULT,
        *,
        schema: str | None = None,
        queue_schema: str = PGBOSS,
        concurrency: int = 100,
        send_timeout: checks.Seconds = SEND_TIMEOUT,
        lost_after: checks.Seconds | None = None,
        **options: Any,
    ) -> None:
        """`schema` is that of the campaign tables, `queue_schema` that of pg-boss's. `concurrency` is how many messages
        are being sent at once. `lost_after` is how long a message
        may be with one worker before the others take that worker for dead: a minute more than `send_timeout`, unless
        given. Further options are those of `jobwire.Worker`."""
        self._settings = DatabaseSettings.parse(url, schema)
        self._store = store_of(self._settings.schema)
        timeout = checks.seconds("send_timeout", send_timeout, minimum=0.001)
        lost = timeout + 60.0 if lost_after is None else checks.seconds("lost_after", lost_after, minimum=0.1)
        self._connections = Connections(self._settings, most=6)
        self._queues = CampaignQueues(self._settings, queue_schema)
        self._sender = Sender(transport_of(transport) if isinstance(transport, str) else transport, timeout=timeout)
        self._feeder = Feeder(self._store, self._connections, self._queues)
        self._upkeep = Upkeep(self._store, self._connections, self._feeder, lost_after=lost)
        at_once = checks.whole("concurrency", concurrency, minimum=1)
        self._delivery = Delivery(
            self._store, self._connections, self._sender, concurrency=at_once, held=lost, on_settled=self._on_settled
        )
        self._unseen = 0
        handlers = {START: QueueHandler(self._start, concurrency=2), SEND: self._delivery}
        options = {"max_stalled": 10, "lease": 30.0, **options}
        # A transport that takes many messages is quick, and would wait for the queue: as many again are fetched ahead.
        fetched = 2 * at_once if self._sender.sends_many else at_once
        self.worker = Worker(handlers, url=self._queues.url, concurrency=fetched, lifespan=self._life, **options)
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Opens the transport and the queues. Raises if one of them, or the tables, can't be used."""
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._connections)
            async with self._connections.use() as connection:
                await require_tables(connection, self._settings.schema)
            await stack.enter_async_context(self._queues)
            await self._queues.install()
            await stack.enter_async_context(self._sender)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def transport(self) -> Transport:
        """The transport that messages go through."""
        return self._sender.transport

    async def run(self, *, signals: bool = True) -> None:
        """Works until it is stopped by a signal, or by `stop`."""
        await self.worker.run(signals=signals)

    async def run_until_done(self, *, signals: bool = True) -> None:
        """Works until no campaign runs or waits for its time to go on. A campaign that a person has paused is not
        waited for."""

        async def stop_when_done() -> None:
            while await self._any_open():  # noqa: ASYNC110 - it is the database that changes
                await asyncio.sleep(_LOOK_EVERY)
            await self.worker.stop()

        stopping = asyncio.create_task(stop_when_done())
        try:
            await self.worker.run(signals=signals)
        finally:
            stopping.cancel()
            await asyncio.gather(stopping, return_exceptions=True)

    async def stop(self) -> None:
        """Finishes the messages that are being sent, and ends `run`."""
        await self.worker.stop()

    @contextlib.asynccontextmanager
    async def _life(self) -> AsyncGenerator[None]:
        upkeep = asyncio.create_task(self._upkeep.run(), name="upkeep of campaigns")
        try:
            yield
        finally:
            upkeep.cancel()
            await asyncio.gather(upkeep, return_exceptions=True)

    async def _start(self, job: ActiveJob[Any]) -> dict[str, Any]:
        """Handles a job of `start-campaign`. A campaign that runs already is only prepared, so asking often is safe."""
        asked = StartCampaign.of(job.data)
        async with self._connections.use() as connection:
            try:
                campaign = await self._store.campaigns.get(connection, asked.campaign_id)
            except NotFound as error:
                logger.warning("a job asks to start a campaign: %s", error)
                return {"status": "UNKNOWN"}
            if campaign.status is CampaignStatus.QUEUED:
                with contextlib.suppress(IllegalTransition):  # another has started or cancelled it just now
                    await self._store.campaigns.start(connection, campaign.id)
        await self._feeder.prepare(campaign.id)
        self._upkeep.wake()
        async with self._connections.use() as connection:
            return {"status": (await self._store.campaigns.get(connection, campaign.id)).status}

    async def _any_open(self) -> bool:
        try:
            async with self._connections.use() as connection:
                if await self._store.campaigns.any_open(connection):
                    return True
            return await self._queues.starts_waiting()
        except StoreUnavailable:
            return True

    def _on_settled(self, count: int) -> None:
        self._unseen += count
        if self._unseen >= _FEED_AFTER:
            self._unseen = 0
            self._upkeep.wake()
