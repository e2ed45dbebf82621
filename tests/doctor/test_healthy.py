"""A healthy store has no findings, and looking at it changes nothing."""

from __future__ import annotations

import psycopg
import pytest
from pymongo import MongoClient

from jobwire import Queue, Worker, connect, embedded
from jobwire.doctor import examination, examine
from jobwire.errors import StoreUnavailable

from .conftest import look


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["bullmq", "pgboss", "monque", "bridgemq"])
async def test_a_durable_store_in_use_has_no_findings(
    protocol: str, tmp_path_factory: pytest.TempPathFactory, unique: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "doctor-durable"
    folder.mkdir(exist_ok=True)
    url = f"{protocol}+embedded:{folder}"

    async def handle(job: object) -> None: ...

    async with Queue(unique, url) as queue, Worker(unique, handle, queue.connection) as worker:
        await queue.schedule("nightly", cron="0 3 * * *")
        job = await queue.add(1)
        await queue.add(2, delay=3600)
        await job.wait(timeout=30)
        seen = await look(url)
        assert worker.stats.completed == 1
    assert seen.healthy
    assert seen.findings == []
    assert seen.queues == [unique]
    assert seen.server


async def test_a_store_in_memory_has_its_queues_looked_at(jobwire_memory_url: str) -> None:
    async with connect(jobwire_memory_url) as connection:
        async with Queue("emails", connection) as queue:
            await queue.add(1)
        seen = await examine(connection)
    assert [one.code for one in seen.findings] == ["no-worker"]
    assert (seen.server, seen.checks, seen.queues) == ("", [], ["emails"])


@pytest.mark.parametrize("opened", [True, False], ids=["opened", "not opened"])
async def test_the_connection_stays_as_it_is(bullmq_url: str, opened: bool) -> None:
    connection = connect(bullmq_url)
    if opened:
        await connection.open()
    await examine(connection)
    assert connection.is_open == opened
    assert await connection.queues() == []
    await connection.close()


async def test_a_store_that_answers_no_check_is_unavailable(bullmq_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "CHECK_WITHIN", 0)
    with pytest.raises(StoreUnavailable):
        await look(bullmq_url)


async def test_no_schema_is_made_in_an_empty_database(pgboss_url: str, own_database: str) -> None:
    seen = await look(pgboss_url)
    assert "store-empty" in [one.code for one in seen.findings]
    with psycopg.connect(own_database) as session:
        made = session.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pgboss%'").fetchone()
    assert made == (0,)


async def test_no_collection_is_made_in_an_empty_database(monque_url: str, jobwire_mongo: embedded.Server) -> None:
    seen = await look(monque_url)
    assert [one.code for one in seen.findings] == ["store-empty"]
    with MongoClient(jobwire_mongo.url) as client:
        assert client[monque_url.partition("?")[0].rpartition("/")[2]].list_collection_names() == []
