"""A database schema of the test's own with the campaign tables in it, and connections to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest
from psycopg import sql

from jobwire.campaigns import Store, connect, init
from jobwire.campaigns.store.campaigns import NewCampaign
from jobwire.campaigns.templates import MessageTemplate
from jobwire.embedded import Server

Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def open_connection(jobwire_postgres: Server) -> AsyncIterator[Any]:
    """Opens further connections, which are closed at the end of the test."""
    async with AsyncExitStack() as stack:

        async def another() -> Connection:
            return await stack.enter_async_context(await connect(jobwire_postgres.url))

        yield another


@pytest.fixture
async def bare(open_connection: Any, unique: str) -> AsyncIterator[Connection]:
    """A connection whose search path is an empty schema of the test's own."""
    connection = await open_connection()
    name = sql.Identifier(unique)
    await connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
    await connection.execute(sql.SQL("SET search_path TO {}").format(name))
    yield connection
    if not connection.closed:
        await connection.execute("SET client_min_messages TO warning")
        await connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(name))


@pytest.fixture
async def connection(bare: Connection, unique: str) -> Connection:
    """A connection to a schema with the campaign tables."""
    await init(bare, schema=unique)
    return bare


@pytest.fixture
def store(unique: str) -> Store:
    return Store(unique)


@pytest.fixture
def campaign_of(connection: Connection, store: Store) -> Any:
    """Makes a RUNNING campaign with jobs for a number of new channels. Returns its id and the ids of its jobs."""
    made = 0

    async def make(channels: int, *, retry_limit: int = 3) -> tuple[str, list[str]]:
        nonlocal made
        made += 1
        batch = await store.batches.add(connection, f"batch{made}")
        template = await store.templates.add(connection, f"template{made}", MessageTemplate("Hello {username}"))
        listed = [await store.channels.add(connection, f"@channel_{made}_{one}") for one in range(channels)]
        await store.batches.add_channels(connection, batch.id, [channel.id for channel in listed])
        new = NewCampaign(f"campaign{made}", batch.id, template.id, {}, "LIVE", 60, retry_limit)
        campaign = await store.campaigns.add(connection, new)
        await store.campaigns.start(connection, campaign.id)
        assert await store.jobs.create(connection, campaign.id) == channels
        return campaign.id, [job.id for job in await store.jobs.page(connection, campaign.id)]

    return make


@pytest.fixture
async def another(connection: Connection, open_connection: Any) -> Any:
    """A second connection, and a function that returns once its statement waits for a lock."""
    other = await open_connection()

    async def waits(one: Connection) -> None:
        query = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s"
        async with asyncio.timeout(30):
            while True:
                await connection.execute("SELECT pg_stat_clear_snapshot()")
                row = await (await connection.execute(query, [one.info.backend_pid])).fetchone()
                if row == ("Lock",):
                    return
                await asyncio.sleep(0.005)

    return other, waits
