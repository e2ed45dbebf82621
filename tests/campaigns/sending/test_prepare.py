"""The jobs of a started campaign are created once, whatever happens to it at that moment."""

from __future__ import annotations

import asyncio
from typing import Any

from psycopg import sql

from jobwire.campaigns import connect
from jobwire.campaigns.connections import Connections
from jobwire.campaigns.sending.feed import Feeder
from jobwire.campaigns.sending.queues import CampaignQueues
from jobwire.campaigns.store import store_of


async def waits_for_a_lock(connection: Any, statement: str) -> None:
    """Returns once a statement with these words waits for a lock."""
    query = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND strpos(query, %s) > 0"
    async with asyncio.timeout(30):
        while not await (await connection.execute(query, [statement])).fetchone():
            await asyncio.sleep(0.01)


async def test_a_pause_while_the_jobs_are_created_does_not_lose_them(
    service, campaign, database, jobwire_postgres, unique
):
    made = await campaign(3)
    await service.start(made.id)
    store = store_of(unique)
    async with (
        Connections(service.settings) as connections,
        CampaignQueues(service.settings, f"{unique}_queues") as queues,
        await connect(jobwire_postgres.url) as other,
    ):
        feeder = Feeder(store, connections, queues)
        async with other.transaction():
            await store.campaigns.pause(other, made.id)
            preparing = asyncio.create_task(feeder.prepare(made.id))
            await waits_for_a_lock(database, f"INSERT INTO {sql.Identifier(unique).as_string()}.jobs")
        await preparing
        assert (await service.resume(made.id)).total_jobs == 0
        assert [one.prepared for one in await store.sending.running(database)] == [False]
        assert await feeder.prepare(made.id)
        assert [one.prepared for one in await store.sending.running(database)] == [True]
    assert (await service.status(made.id)).total_jobs == 3
