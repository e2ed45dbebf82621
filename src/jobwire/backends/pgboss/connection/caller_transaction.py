"""Runs statements in the caller's own transaction: on psycopg connections, sync or async, and on SQLAlchemy's."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import tuple_row

from jobwire.backends.pgboss.connection.errors import failure
from jobwire.backends.pgboss.connection.pipelined import Call
from jobwire.backends.pgboss.connection.rows import Row
from jobwire.errors import InvalidOption


async def run(transaction: Any, call: Call, where: str) -> list[Row]:
    """Runs one statement in the caller's transaction, which is given as its connection. Returns the rows."""
    statement, values = call
    ordered = [None if (value := values[name]) is None else value.decode() for name in statement.values]
    text = statement.text.decode()
    driver = await _driver(transaction)
    try:
        if isinstance(driver, psycopg.AsyncConnection):
            async with psycopg.AsyncRawCursor(driver, row_factory=tuple_row) as cursor:
                await cursor.execute(text, ordered)  # pyright: ignore[reportArgumentType] our own text
                return [_plain(row) for row in await cursor.fetchall()]
        return await asyncio.to_thread(_run_blocking, driver, text, ordered)
    except psycopg.Error as error:
        raise failure(where, str(error), error.sqlstate or "") from error


def _run_blocking(connection: psycopg.Connection[Any], text: str, values: list[str | None]) -> list[Row]:
    with psycopg.RawCursor(connection, row_factory=tuple_row) as cursor:
        cursor.execute(text, values)  # pyright: ignore[reportArgumentType] our own text
        return [_plain(row) for row in cursor.fetchall()]


def _plain(row: Row) -> Row:
    return tuple(str(value) if isinstance(value, UUID) else value for value in row)


async def _driver(transaction: Any) -> psycopg.AsyncConnection[Any] | psycopg.Connection[Any]:
    """The psycopg connection behind what the caller gave."""
    found = transaction
    if type(transaction).__module__.startswith("sqlalchemy"):
        found = await _behind_sqlalchemy(transaction)
    if isinstance(found, (psycopg.AsyncConnection, psycopg.Connection)):
        return found  # pyright: ignore[reportUnknownVariableType]
    raise InvalidOption(
        "transaction", transaction, "must be a psycopg 3 connection, sync or async, or SQLAlchemy's over that driver"
    )


async def _behind_sqlalchemy(connection: Any) -> Any:
    """Returns the driver's connection of an AsyncConnection, an AsyncSession, a Connection or a Session.

    SQLAlchemy commits only a transaction that it began itself, and does not see statements on the driver's connection.
    So it is made to begin one here, as its own first statement would.
    """
    if hasattr(connection, "get_raw_connection"):
        if not connection.in_transaction():
            await connection.begin()
        return (await connection.get_raw_connection()).driver_connection
    if hasattr(connection, "run_sync"):
        return await _behind_sqlalchemy(await connection.connection())
    if callable(connection.connection):  # a Session
        connection = connection.connection()
    if not connection.in_transaction():
        connection.begin()
    return connection.connection.driver_connection
