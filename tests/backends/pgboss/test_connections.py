"""How many connections a process holds: few at rest, whatever the number of its workers."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from awaiting import eventually
from faults.echo_worker import echo
from jobwire import NewJob, Queue, Worker, connect
from jobwire.backends.pgboss.connection import pool
from jobwire.backends.pgboss.connection.statements import statement
from jobwire.backends.pgboss.work import handler_connections

WORKERS = 10
OPEN = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = %s"


@pytest.fixture
def url(jobwire_postgres, unique):
    return f"pgboss+{jobwire_postgres.url}?application_name={unique}&schema={unique}"


@pytest.fixture(autouse=True)
def short_periods(monkeypatch):
    """Lets connections without use go after a second instead of ten."""
    monkeypatch.setattr(pool, "_PERIOD", 1.0)
    monkeypatch.setattr(handler_connections, "_IDLE", 1.0)


@pytest.fixture
def held(rows, unique):
    """How many connections are open now."""

    async def count() -> int:
        return (await rows(OPEN, unique))[0]["n"]

    return count


async def most_held(held, seconds: float) -> int:
    return max([await held() for _ in range(int(seconds * 20)) if not await asyncio.sleep(0.05)])


async def at_rest(held) -> bool:
    """Whether for a whole second there were at most two: one that listens and one that asks."""
    return await most_held(held, 1) <= 2


async def test_ten_workers_on_one_connection_hold_two_at_rest(url, held):
    async with connect(url) as connection, AsyncExitStack() as stack:
        for number in range(WORKERS):
            await stack.enter_async_context(Worker(f"work-{number}", echo, connection))
        await eventually(lambda: at_rest(held), within=40)


@pytest.mark.slow
async def test_ten_workers_of_one_url_hold_two_at_rest(url, held):
    async with AsyncExitStack() as stack:
        for number in range(WORKERS):
            await stack.enter_async_context(Worker(f"work-{number}", echo, url))
        await eventually(lambda: at_rest(held), within=40)
    assert await eventually(lambda: _none(held))


async def _none(held) -> bool:
    return await held() == 0


@pytest.mark.slow
async def test_a_worker_goes_back_to_two_after_load_and_leases(url, held):
    async def handle(job):
        if job.data == "long":
            await asyncio.sleep(1.5)
        if job.data == "transaction":
            await (await job.transaction()).execute("SELECT 1")

    async with Queue("work", url) as queue, Worker("work", handle, url, concurrency=100, lease=1) as worker:
        kinds = ["long", *["transaction"] * 5, *["short"] * 5000]
        jobs = await queue.add_many([NewJob(kind) for kind in kinds])
        assert await most_held(held, 1) > 2
        await eventually(lambda: worker.stats.completed == len(jobs), within=60)
        await eventually(lambda: at_rest(held), within=60)


async def test_what_the_url_asks_of_a_connection_is_done(jobwire_postgres, unique):
    url = f"pgboss+{jobwire_postgres.url}?options=-c%20work_mem%3D5MB&schema={unique}"
    async with connect(url) as connection, connection.backend.store.connection() as pipelined:
        assert await pipelined.run([(statement("show", "SHOW work_mem"), {})]) == [[("5MB",)]]
