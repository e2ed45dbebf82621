"""Statements of one table: one file each, `sql/<table>/<name>.sql`.

`{schema}` stands for the schema's name, `{columns}` for the columns of the table's row class, `{next_id}` for the
second half of a new id, and `%(name)s` for a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Generic, LiteralString, TypeVar, cast

import psycopg
from psycopg import sql
from psycopg.rows import class_row, tuple_row

from jobwire import checks
from jobwire.campaigns.errors import Ambiguous, NotFound
from jobwire.campaigns.ids import NEXT_ID
from jobwire.errors import InvalidOption

Connection = psycopg.AsyncConnection[Any]
Made = TypeVar("Made")
RowT = TypeVar("RowT")

_LOCK_NAME = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
PAGE = 100
"""Rows of a list if the caller names no number."""


@cache
def _source(table: str, name: str) -> str:
    text = files("jobwire.campaigns.store").joinpath("sql", table, f"{name}.sql").read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


class Table(Generic[RowT]):
    """A table whose rows are of one class."""

    kind: ClassVar[str]
    """The word for one row in errors."""
    name: ClassVar[str]
    row: type[RowT]

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self._texts: dict[str, str] = {}

    def text(self, statement: str) -> str:
        """Returns the text of a statement, fitted to the schema."""
        found = self._texts.get(statement)
        if found is None:
            columns: Sequence[str] = [one.name for one in fields(cast("Any", self.row))]
            found = self._texts[statement] = _source(self.name, statement).format(
                schema=sql.Identifier(self.schema).as_string().replace("%", "%%"),
                columns=", ".join(columns),
                next_id=NEXT_ID,
            )
        return found

    async def get(self, connection: Connection, key: str) -> RowT:
        """Returns the row with this id, else the one with this name. Raises NotFound, or Ambiguous if several rows have
        the name."""
        found = await self.rows(connection, "get", {"key": checks.maybe_empty(self.kind, key)})
        by_id = [row for row in found if cast("Any", row).id == key]
        if by_id:
            return by_id[0]
        if len(found) > 1:
            raise Ambiguous(self.kind, key, [cast("Any", row).id for row in found])
        if not found:
            raise await self.not_found(connection, key)
        return found[0]

    async def lock_name(self, connection: Connection, name: str) -> None:
        """Lets one transaction at a time look for a name and add it."""
        await connection.execute(_LOCK_NAME, [f"{self.schema}.{self.name} {name}"])

    async def refuse_taken(self, connection: Connection, name: str) -> None:
        """Raises InvalidOption if a row has this name already. Call it in the transaction that adds the name."""
        await self.lock_name(connection, name)
        for row in await self.rows(connection, "get", {"key": name}):
            rule = f"is the name of another {self.kind} (id {cast('Any', row).id}); choose another name"
            raise InvalidOption("name", name, rule)

    async def rows(self, connection: Connection, statement: str, values: Mapping[str, Any]) -> list[RowT]:
        """Runs a statement that returns rows of this table."""
        return await self.made(connection, statement, values, self.row)

    async def one(self, connection: Connection, statement: str, values: Mapping[str, Any]) -> RowT | None:
        """Runs a statement that returns at most one row of this table."""
        found = await self.rows(connection, statement, values)
        return found[0] if found else None

    async def made(
        self, connection: Connection, statement: str, values: Mapping[str, Any], kind: type[Made]
    ) -> list[Made]:
        """Runs a statement and returns its rows as objects of a class."""
        async with connection.cursor(row_factory=class_row(kind)) as cursor:
            await cursor.execute(cast("LiteralString", self.text(statement)), values)
            return await cursor.fetchall()

    async def tuples(self, connection: Connection, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Runs a statement and returns its rows as tuples."""
        async with connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(cast("LiteralString", self.text(statement)), values)
            return await cursor.fetchall()

    async def number(self, connection: Connection, statement: str, values: Mapping[str, Any]) -> int:
        """Runs a statement that returns one number."""
        [(number,)] = await self.tuples(connection, statement, values)
        return number

    async def change(self, connection: Connection, statement: str, values: Mapping[str, Any]) -> None:
        """Runs a statement that returns nothing."""
        await connection.execute(cast("LiteralString", self.text(statement)), values)

    async def not_found(self, connection: Connection, key: str) -> NotFound:
        """Returns the error for a key that no row has, with a similar name as a suggestion."""
        names = await self.tuples(connection, "names", {})
        return NotFound(self.kind, key, [name for (name,) in names])
