"""A plain connection to the schema of a pg-boss test, for looking at what was stored there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from jobwire.embedded import Server


@pytest.fixture
async def database(jobwire_postgres: Server, unique: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A connection whose search path is the schema of the test."""
    connection = await psycopg.AsyncConnection.connect(jobwire_postgres.url, autocommit=True, row_factory=dict_row)
    async with connection:
        await connection.execute(f'SET search_path TO "{unique}", public')
        yield connection


@pytest.fixture
def rows(database: psycopg.AsyncConnection[Any]) -> Callable[..., Any]:
    """Returns what a query finds."""

    async def ask(query: str, *values: Any) -> list[dict[str, Any]]:
        return await (await database.execute(query, values)).fetchall()

    return ask
