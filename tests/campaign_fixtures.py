"""A service and workers on campaign tables and queues of the test's own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg import sql

from jobwire.campaigns import CampaignService, CampaignWorker, connect
from jobwire.embedded import Server


@pytest.fixture
def campaign_schemas(unique: str) -> dict[str, str]:
    """The options that name the schemas of the tables and of the queues."""
    return {"schema": unique, "queue_schema": f"{unique}_queues"}


@pytest.fixture
async def campaign_service(
    jobwire_postgres: Server, campaign_schemas: dict[str, str]
) -> AsyncIterator[CampaignService]:
    """A service with tables and queues of the test's own."""
    async with CampaignService(jobwire_postgres.url, **campaign_schemas) as made:
        await made.init()
        yield made
    async with await connect(jobwire_postgres.url) as connection:
        await connection.execute("SET client_min_messages TO warning")
        for name in (campaign_schemas["schema"], queues := campaign_schemas["queue_schema"], f"{queues}_jobwire"):
            await connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


@pytest.fixture
async def campaign_database(
    campaign_service: CampaignService, jobwire_postgres: Server, unique: str
) -> AsyncIterator[Any]:
    """A connection that sees the service's tables."""
    async with await connect(jobwire_postgres.url) as connection:
        await connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(unique)))
        yield connection


@pytest.fixture
def new_campaign(campaign_service: CampaignService, campaign_database: Any) -> Any:
    """Creates a campaign for a number of new channels. Returns it."""
    made = 0

    async def make(channels: int, *, content: str = "Hello {username}", **options: Any) -> Any:
        nonlocal made
        made += 1
        await campaign_service.add_template(f"template{made}", content)
        await campaign_database.execute("INSERT INTO batches (id, name) VALUES (%s, %s)", [f"b{made}", f"batch{made}"])
        await campaign_database.execute(
            "INSERT INTO channels (id, username) SELECT %s || i, '@' || %s || i FROM generate_series(1, %s) i",
            [f"ch{made}_", f"channel{made}_", channels],
        )
        await campaign_database.execute(
            "INSERT INTO batch_channels SELECT %s, id FROM channels WHERE starts_with(id, %s)",
            [f"b{made}", f"ch{made}_"],
        )
        options = {"rate": 1_000_000, "mode": "LIVE", **options}
        return await campaign_service.create(f"campaign{made}", batch=f"b{made}", template=f"template{made}", **options)

    return make


@pytest.fixture
def campaign_working(
    campaign_service: CampaignService, jobwire_postgres: Server, campaign_schemas: dict[str, str]
) -> Any:
    """Runs a worker with a transport beside the test, until the end of the block."""

    @contextlib.asynccontextmanager
    async def work(transport: Any, **options: Any) -> AsyncIterator[CampaignWorker]:
        options = {"shutdown_timeout": 2, **campaign_schemas, **options}
        async with CampaignWorker(jobwire_postgres.url, transport, **options) as worker:
            running = asyncio.create_task(worker.run(signals=False))
            try:
                yield worker
            finally:
                await worker.stop()
                await running

    return work


@pytest.fixture
def campaign_reaches(campaign_service: CampaignService) -> Any:
    """Waits until a campaign is in one of the given states. Returns it."""

    async def wait(campaign_id: str, *states: str, timeout: float = 60) -> Any:
        async with asyncio.timeout(timeout):
            while (found := await campaign_service.status(campaign_id)).status not in states:
                await asyncio.sleep(0.02)
            return found

    return wait
