"""A blocking connection to a database with a pg-boss schema."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any, LiteralString, cast

import psycopg
import pyarrow as pa
from psycopg.sql import Literal

from jobwire.backends.pgboss.connection.errors import failure, sqlstate_of
from jobwire.backends.pgboss.connection.schema import Layout, bare, check_columns, check_version, identifier
from jobwire.backends.pgboss.connection.statements import source, statement
from jobwire.errors import StoreRefused
from jobwire.pipeline.stores.pgboss import arrow
from jobwire.urls import Address

OLDEST_SERVER = 14
"""A row's fingerprint is `hash_record_extended`, which came with PostgreSQL 14."""


@cache
def sql(name: str) -> str:
    """Returns the text of a file under sql/, without its comments."""
    text = files("jobwire.pipeline.stores.pgboss").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


class Database:
    """Runs statements. Every failure is raised as one of jobwire's errors."""

    def __init__(self, address: Address) -> None:
        self.where = f"PostgreSQL at {address.redacted}"
        self._url = address.driver_url
        self._arrow: arrow.Source | None = None
        with self._reaching():
            self._connection = psycopg.connect(self._url, autocommit=True, cursor_factory=psycopg.RawCursor)
        try:
            self.ask(arrow.SETTINGS)
            self.layout = self._detect(address.options.get("schema", "pgboss"))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._arrow is not None:
            self._arrow.close()
            self._arrow = None
        self._connection.close()

    def fitted(self, name: str, **parts: str) -> str:
        """Returns a statement of sql/ for this schema, with the parts that the caller has made."""
        layout = self.layout
        return sql(name).format(schema=layout.schema, side=layout.side, now=layout.now, **parts)

    def literal(self, value: object) -> str:
        """Returns the value as a literal, for a statement that takes no parameters."""
        return Literal(value).as_string(self._connection)

    def ask(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of one statement, whose values are numbered `$1`, `$2` ..."""
        with self._reaching():
            cursor = self._connection.execute(cast(LiteralString, text), values or None)
            return cursor.fetchall() if cursor.description is not None else []

    def batches(self, text: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a query, through Arrow from end to end where ADBC is installed."""
        with self._reaching():
            if self._arrow is None:
                self._arrow = arrow.open_source(self._url, self._connection)
            yield from self._arrow.batches(text, schema)

    @contextmanager
    def _reaching(self) -> Generator[None]:
        try:
            yield
        except (psycopg.Error, *arrow.ERRORS) as error:
            raise failure(self.where, str(error), sqlstate_of(error)) from error

    def _detect(self, name: str) -> Layout:
        if self._connection.info.server_version < OLDEST_SERVER * 10_000:
            shown = self._connection.info.server_version // 10_000
            raise StoreRefused(f"{self.where} is PostgreSQL {shown}; the pipeline needs {OLDEST_SERVER} or newer")
        detect = statement("detect", source("detect")).text.decode()
        columns = {table: frozenset(names) for table, names in self.ask(detect, [bare(name)])}
        if "version" not in columns:
            raise StoreRefused(f"{self.where} has no schema {name} of pg-boss")
        has_clock = columns.pop("job_now()", None) is not None
        versions = self.ask(f"SELECT version FROM {identifier(name)}.version")  # noqa: S608 a checked name
        if not versions:
            raise StoreRefused(f"{self.where} has no schema {name} of pg-boss: it is being made")
        version = int(versions[0][0])
        check_version(name, version)
        check_columns(name, version, columns)
        return Layout(name, version, columns, has_clock)
