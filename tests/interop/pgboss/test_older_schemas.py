"""Schemas of older releases: what they hold is used, what they lack is left out, and their number is never touched."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from awaiting import eventually
from jobwire import NewJob, Queue, State, StoreRefused, Worker, connect, urls
from jobwire.backends.pgboss import Boss
from jobwire.doctor import examine
from jobwire.native import PgBossWorker

from .node import NodeBoss, Peer

OF_THE_SERVER = {"durability", "connections", "unused-slot", "replica-lag", "open-transaction"}
"""Findings of the doctor about the server, which other tests share and which does not sync."""
RELEASES = {26: "pg-boss-26", 31: "pg-boss-31", 37: "pg-boss-37"}


@pytest.fixture(params=RELEASES, ids=lambda version: f"schema {version}")
async def old(request, jobwire_postgres, unique):
    """A schema made by an older release, with a queue in it."""
    with Peer(jobwire_postgres.url, RELEASES[request.param]) as peer:
        node = NodeBoss(peer, unique)
        await node.call("createQueue", "letters", {"retryLimit": 1})
        yield node, request.param
        await node.stop()


async def test_both_sides_work_on_it(old, jobwire_postgres, unique, rows):
    node, version = old
    url = f"pgboss+{jobwire_postgres.url}?schema={unique}"
    failed = asyncio.Event()

    async def handler(job):
        if job.data["n"] == 1 and not failed.is_set():
            failed.set()
            raise RuntimeError("once")
        return {"by": "python"}

    async with connect(url) as connection, Queue("letters", connection) as queue:
        await node.call("send", "letters", {"n": 0})
        await queue.add_many([NewJob({"n": n}, priority=n) for n in range(1, 4)])
        delayed = await queue.add({"n": 9}, delay=3600)
        async with Worker("letters", handler, connection, concurrency=2, native=PgBossWorker(poll=0.1)) as worker:
            await eventually(lambda: worker.stats.completed == 4)
        assert (await queue.counts())[State.COMPLETED] == 4
        await queue.admin.promote(delayed.id)
        [fetched] = await node.call("fetch", "letters")
        assert fetched["id"] == delayed.id
        await node.call("complete", "letters", delayed.id, {"by": "node"})
        assert await queue.wait(delayed.id, timeout=10) == {"by": "node"}
        cancelled = await queue.add({"n": 5})
        await queue.cancel(cancelled.id)
        await queue.admin.retry(cancelled.id)
        await queue.admin.remove(cancelled.id)
        await Boss(connection).supervise()
    assert await rows("SELECT version FROM version") == [{"version": version}]


async def test_the_doctor_can_look_at_it(old, jobwire_postgres, unique):
    node, version = old
    await node.call("send", "letters", {"n": 0})
    await node.call("schedule", "letters", "0 3 * * *")
    seen = await examine(connect(f"pgboss+{jobwire_postgres.url}?schema={unique}"))
    assert [one for one in seen.findings if one.code not in OF_THE_SERVER] == []
    assert (seen.queues, seen.server.split()[-1]) == (["letters"], str(version))


async def test_a_schema_that_is_too_old_is_refused_with_its_number(jobwire_postgres, unique):
    async with await psycopg.AsyncConnection.connect(jobwire_postgres.url, autocommit=True) as database:
        await database.execute(f"CREATE SCHEMA {unique}")
        await database.execute(f"CREATE TABLE {unique}.version (version integer)")
        await database.execute(f"INSERT INTO {unique}.version VALUES (24)")
    with pytest.raises(StoreRefused, match="version 24"):
        await connect(f"pgboss+{jobwire_postgres.url}?schema={unique}").open()


async def test_a_schema_that_lacks_columns_is_refused_with_their_names(node, url):
    address = urls.parse(url)
    async with await psycopg.AsyncConnection.connect(address.driver_url, autocommit=True) as database:
        await database.execute(f"ALTER TABLE {address.options['schema']}.job RENAME COLUMN retry_delay_max TO gone")
    with pytest.raises(StoreRefused, match="job has no retry_delay_max"):
        await connect(url).open()
