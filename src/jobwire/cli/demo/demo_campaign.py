"""A small campaign: messages to made-up channels, sent into a file at a held rate."""

from __future__ import annotations

import asyncio
import zlib
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from jobwire import embedded
from jobwire.campaigns import Campaign, CampaignService, CampaignWorker, connect
from jobwire.campaigns.transports import Message, PeerBlocked, Receipt, Retryable
from jobwire.campaigns.transports.outbox import OutboxTransport

NAME = "spring"
_SCHEMAS = ("demo_campaigns", "demo_campaigns_queues")
_RATE = 1200
_LONGEST = 60.0


class DemoTransport(OutboxTransport):
    """The outbox, with a few channels that refuse messages and some that fail at first."""

    async def send(self, message: Message) -> Receipt:
        drawn = zlib.crc32(message.channel_username.encode()) % 100
        if drawn < 2:
            raise PeerBlocked("the channel does not accept messages", reason="CHAT_WRITE_FORBIDDEN")
        if drawn < 6 and message.attempt == 1:
            raise Retryable("the service did not answer", reason="TIMEOUT")
        return await super().send(message)


class DemoCampaign:
    """A campaign that lasts for about the planned time. `async with` starts it on the demo's embedded PostgreSQL."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        self.outbox = folder / "outbox.jsonl"
        self.state: Campaign | None = None
        self._channels = max(20, int(_RATE / 60 * min(seconds, _LONGEST)))
        self._stack = AsyncExitStack()
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> DemoCampaign:
        async with AsyncExitStack() as stack:
            server = stack.enter_context(embedded.postgres(self.folder))
            tables, queues = _SCHEMAS
            await _drop(server.url)
            self._service = await stack.enter_async_context(
                CampaignService(server.url, schema=tables, queue_schema=queues)
            )
            await self._create()
            self._worker = await stack.enter_async_context(
                CampaignWorker(server.url, DemoTransport(str(self.outbox)), schema=tables, queue_schema=queues)
            )
            await self._service.start(NAME)
            self._running = asyncio.create_task(self._worker.run(signals=False))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            await self.stop_workers()
        finally:
            await self._stack.aclose()

    async def stop_workers(self) -> None:
        """Stops the worker, after the messages that it sends."""
        if self._running is not None:
            await self._worker.stop()
            await self._running
            self._running = None

    async def look(self) -> None:
        """Reads how far the campaign has come."""
        self.state = await self._service.status(NAME)

    @property
    def idle(self) -> bool:
        """True if the campaign had ended at the last look."""
        return self.state is not None and self.state.completed_at is not None

    async def _create(self) -> None:
        for old in (self.outbox, self.outbox.with_name(f"{self.outbox.name}.index")):
            with suppress(FileNotFoundError):
                old.unlink()
        channels = self.folder / "channels.csv"
        channels.write_text(
            "username,category\n" + "".join(f"@tea_news_{number:04},tea\n" for number in range(self._channels))
        )
        await self._service.init()
        await self._service.import_channels(channels, batch="friends of tea")
        await self._service.add_template("first flush", "Dear {username}, the first {product} of the year is here.")
        await self._service.create(
            NAME, batch="friends of tea", template="first flush", params={"product": "Darjeeling"}, rate=_RATE,
            mode="LIVE",
        )  # fmt: skip


def campaigns_at(server_url: str) -> str:
    """Returns the URL of the demo's campaigns on a server."""
    return f"{server_url}?schema={_SCHEMAS[0]}"


async def _drop(url: str) -> None:
    """Deletes what an earlier demo left."""
    async with await connect(url) as connection:
        await connection.execute("SET client_min_messages TO warning")
        for name in (*_SCHEMAS, f"{_SCHEMAS[1]}_jobwire"):
            await connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")  # pyright: ignore[reportArgumentType] our own names
