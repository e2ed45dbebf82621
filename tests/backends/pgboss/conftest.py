"""A pg-boss schema of the test's own, and a plain connection for looking at what jobwire stored in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from jobwire import Connection, Queue, Worker, connect
from jobwire.backends.pgboss import Boss
from jobwire.boundary import Consumer, ConsumerSettings
from jobwire.embedded import Server

QUEUE = "letters"


@pytest.fixture
def url(jobwire_postgres: Server, unique: str) -> str:
    return f"pgboss+{jobwire_postgres.url}?schema={unique}"


@pytest.fixture
async def connection(url: str) -> AsyncIterator[Connection]:
    async with connect(url) as connection:
        yield connection


@pytest.fixture
async def queue(connection: Connection) -> AsyncIterator[Queue]:
    async with Queue(QUEUE, connection) as queue:
        yield queue


@pytest.fixture
def boss(connection: Connection) -> Boss:
    return Boss(connection)


@pytest.fixture
def work(connection: Connection) -> Callable[..., Worker]:
    def make(handler: Callable[[Any], Any], *, queue: str = QUEUE, **options: Any) -> Worker:
        return Worker(queue, handler, connection, **options)

    return make


@pytest.fixture
def consume(connection: Connection) -> Callable[..., Consumer]:
    def make(queue: str = QUEUE, **settings: Any) -> Consumer:
        return connection.backend.consumer(ConsumerSettings(queue=queue, worker_id="w", **settings))

    return make


@pytest.fixture
async def database(jobwire_postgres: Server, unique: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    connection = await psycopg.AsyncConnection.connect(jobwire_postgres.url, autocommit=True, row_factory=dict_row)
    async with connection:
        await connection.execute(f'SET search_path TO "{unique}", public')
        yield connection


@pytest.fixture
def rows(database: psycopg.AsyncConnection[Any]) -> Callable[..., Any]:
    """What a query finds."""

    async def ask(query: str, *values: Any) -> list[dict[str, Any]]:
        return await (await database.execute(query, values)).fetchall()

    return ask
