"""Jobs in the caller's own transaction: they commit or vanish with it."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import psycopg
import pytest

from awaiting import eventually
from jobwire import AddStatus, InvalidOption, State, sync
from jobwire.backends.pgboss import Boss
from jobwire.options import NewJob, Unique


async def waiting(queue):
    return (await queue.counts())[State.WAITING]


async def test_a_job_is_seen_when_the_async_transaction_commits(queue, jobwire_postgres):
    async with await psycopg.AsyncConnection.connect(jobwire_postgres.url) as connection:
        added = await queue.add({"n": 1}, transaction=connection)
        assert await queue.get(added.id) is None
        await connection.commit()
    assert (await queue.get(added.id)).data == {"n": 1}


async def test_a_job_vanishes_when_the_async_transaction_rolls_back(queue, jobwire_postgres):
    async with await psycopg.AsyncConnection.connect(jobwire_postgres.url) as connection:
        await queue.add({"n": 1}, transaction=connection)
        await queue.add_many([NewJob(n) for n in range(5)], transaction=connection)
        await connection.rollback()
    assert await waiting(queue) == 0


@pytest.mark.parametrize("commit", [True, False])
async def test_a_blocking_connection_serves_as_well(queue, jobwire_postgres, commit):
    with psycopg.connect(jobwire_postgres.url) as connection:
        await queue.add_many([NewJob(n) for n in range(3)], transaction=connection)
        await asyncio.to_thread(connection.commit if commit else connection.rollback)
    assert await waiting(queue) == (3 if commit else 0)


@pytest.mark.parametrize("commit", [True, False])
def test_a_blocking_connection_serves_blocking_code(jobwire_postgres, jobwire_pgboss_url, commit):
    app = sync.App(jobwire_pgboss_url)

    @app.task
    def double(number: int) -> int:
        return number * 2

    with app, psycopg.connect(jobwire_postgres.url) as connection:
        connection.execute("create temporary table numbers (n int)")
        connection.execute("insert into numbers values (1)")
        job = double.options(transaction=connection).add(4)
        double.options(transaction=connection).add_many([{"number": 5}, {"number": 6}])
        connection.commit() if commit else connection.rollback()
        assert app.queue("double").counts()[State.WAITING] == (3 if commit else 0)
        if commit:
            with app.worker():
                assert job.wait(timeout=30) == 8


async def test_a_connection_keeps_its_own_row_factory(queue, jobwire_postgres):
    from psycopg.rows import dict_row

    async with await psycopg.AsyncConnection.connect(jobwire_postgres.url, row_factory=dict_row) as connection:
        added = await queue.add(1, transaction=connection)
    assert await queue.get(added.id)


@pytest.mark.parametrize("commit", [True, False])
async def test_sqlalchemy_connections_and_sessions_commit_with_their_job(queue, jobwire_postgres, commit):
    import sqlalchemy
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
    from sqlalchemy.orm import Session

    address = "postgresql+psycopg" + jobwire_postgres.url.removeprefix("postgresql")
    blocking, engine = sqlalchemy.create_engine(address), create_async_engine(address)
    try:
        with blocking.connect() as connection:
            await queue.add("connection", transaction=connection)
            (connection.commit if commit else connection.rollback)()
        with Session(blocking) as session:
            await queue.add("session", transaction=session)
            (session.commit if commit else session.rollback)()
        async with engine.connect() as connection:
            await queue.add("async connection", transaction=connection)
            await (connection.commit() if commit else connection.rollback())
        async with AsyncSession(engine) as session:
            await queue.add("async session", transaction=session)
            await (session.commit() if commit else session.rollback())
    finally:
        blocking.dispose()
        await engine.dispose()
    assert await waiting(queue) == (4 if commit else 0)


async def test_a_refused_job_leaves_the_transaction_usable(queue, jobwire_postgres):
    first = await queue.add(1, unique=Unique("k"))
    async with await psycopg.AsyncConnection.connect(jobwire_postgres.url) as connection:
        second = await queue.add(2, unique=Unique("k"), transaction=connection)
        assert (second.id, second.add_status) == (first.id, AddStatus.DUPLICATE)
        await queue.add(3, transaction=connection)
    assert await waiting(queue) == 2


async def test_what_is_no_connection_is_refused(queue):
    with pytest.raises(InvalidOption, match="transaction: must be a psycopg 3 connection"):
        await queue.add(1, transaction=object())


async def test_a_worker_is_woken_by_the_commit(queue, work, jobwire_postgres):
    seen = asyncio.Event()

    async def handler(job):
        seen.set()

    async with work(handler) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        async with await psycopg.AsyncConnection.connect(jobwire_postgres.url) as connection:
            await queue.add(1, transaction=connection)
            assert not seen.is_set()
        await asyncio.wait_for(seen.wait(), 20)


async def test_the_facade_refuses_other_protocols():
    from jobwire import connect

    with pytest.raises(InvalidOption, match="pg-boss"):
        Boss(connect("memory:"))


async def test_passwords_are_in_no_error(jobwire_postgres, unique):
    from jobwire import StoreRefused, StoreUnavailable, connect

    secret = "hunter2-very-secret"
    parts = urlsplit(jobwire_postgres.url)
    wrong = f"pgboss+postgresql://jobwire:{secret}@{parts.hostname}:{parts.port}/postgres"
    with pytest.raises((StoreRefused, StoreUnavailable)) as refusal:
        await connect(wrong).open()
    assert secret not in str(refusal.value)
    with pytest.raises(StoreUnavailable):
        await connect("pgboss+postgresql://jobwire:x@127.0.0.1:1/postgres").open()
