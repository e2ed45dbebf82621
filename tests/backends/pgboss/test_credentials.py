"""What PostgreSQL refuses at login is a refusal; what it can't do just now is an outage."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from awaiting import eventually
from credentials import is_refused
from jobwire import Queue, StoreRefused, StoreUnavailable, Worker, connect

Database = psycopg.AsyncConnection[Any]


@pytest.fixture
async def role(jobwire_postgres, unique) -> AsyncIterator[tuple[str, Database]]:
    """A role of the test's own, whose password is `first`, and the superuser's connection."""
    async with await psycopg.AsyncConnection.connect(jobwire_postgres.url, autocommit=True) as database:
        await run(database, "CREATE ROLE {} SUPERUSER LOGIN PASSWORD 'first'", unique)
        yield unique, database
        await database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [unique])
        await run(database, "REASSIGN OWNED BY {} TO jobwire", unique)
        await run(database, "DROP ROLE {}", unique)


async def run(database: Database, statement: str, *names: str) -> None:
    await database.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def address(server: Any, login: str, name: str = "postgres", options: str = "") -> str:
    return f"pgboss+postgresql://{login}@127.0.0.1:{urlsplit(server.url).port}/{name}{options}"


async def refusal(url: str) -> str:
    connection = connect(url)
    with pytest.raises((StoreRefused, StoreUnavailable)) as raised:
        await connection.open()
    await connection.close()
    assert raised.type.__mro__[1] in (StoreRefused, StoreUnavailable)
    return raised.type.__mro__[1].__name__


async def test_what_is_wrong_with_a_login_is_a_refusal(jobwire_postgres, role):
    name, database = role
    assert await refusal(address(jobwire_postgres, f"{name}:wrong")) == "StoreRefused"
    assert await refusal(address(jobwire_postgres, name)) == "StoreRefused"
    assert await refusal(address(jobwire_postgres, f"{name}-who:first")) == "StoreRefused"
    assert await refusal(address(jobwire_postgres, f"{name}:first", f"{name}-no")) == "StoreRefused"
    assert await refusal(address(jobwire_postgres, f"{name}:first", options="?sslmode=require")) == "StoreRefused"
    await run(database, "ALTER ROLE {} NOLOGIN", name)
    assert await refusal(address(jobwire_postgres, f"{name}:first")) == "StoreRefused"


async def test_a_missing_permission_is_a_refusal(jobwire_postgres, role):
    name, database = role
    await run(database, "ALTER ROLE {} NOSUPERUSER", name)
    assert await refusal(address(jobwire_postgres, f"{name}:first", options=f"?schema={name}")) == "StoreRefused"
    await run(database, "CREATE DATABASE {}", name)
    await run(database, "REVOKE CONNECT ON DATABASE {} FROM PUBLIC", name)
    assert await refusal(address(jobwire_postgres, f"{name}:first", name)) == "StoreRefused"
    await run(database, "DROP DATABASE {}", name)


async def test_too_many_connections_are_an_outage(jobwire_postgres, role):
    name, database = role
    await run(database, "ALTER ROLE {} NOSUPERUSER CONNECTION LIMIT 0", name)
    assert await refusal(address(jobwire_postgres, f"{name}:first")) == "StoreUnavailable"


async def test_a_changed_password_is_a_refusal_and_a_worker_goes_on_when_it_holds_again(jobwire_postgres, role):
    name, database = role
    url = address(jobwire_postgres, f"{name}:first", options=f"?schema={name}")
    async with (
        Queue("mail", f"pgboss+{jobwire_postgres.url}?schema={name}") as queue,
        Queue("mail", url) as revoked,
        Worker("mail", lambda job: {"twice": job.data["n"] * 2}, url) as worker,
    ):
        assert await (await queue.add({"n": 1})).wait(timeout=20) == {"twice": 2}
        await run(database, "ALTER ROLE {} PASSWORD 'second'", name)
        await database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [name])
        await eventually(lambda: is_refused(revoked))
        await eventually(lambda: not worker.connected)
        job = await queue.add({"n": 2})
        await run(database, "ALTER ROLE {} PASSWORD 'first'", name)
        assert await job.wait(timeout=60) == {"twice": 4}
    await database.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))
