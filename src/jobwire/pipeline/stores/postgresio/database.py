"""A blocking connection to a PostgreSQL database, made for reading many rows."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString, cast

import psycopg
import pyarrow as pa
from psycopg.sql import Literal

from jobwire.backends.pgboss.connection.errors import failure, sqlstate_of
from jobwire.pipeline.stores.postgresio import arrow


class Database:
    """Runs statements. Every failure is raised as one of jobwire's errors, which begins with `where`.

    With `pooled`, all statements are one transaction and none is prepared: a pooler may give each transaction another
    connection of the server, without the settings of this one.
    """

    def __init__(self, url: str, where: str, *, pooled: bool = False) -> None:
        self.where = where
        self._url = url
        self._pooled = pooled
        self._arrow: arrow.Source | None = None
        with self._reaching():
            self._connection = psycopg.connect(
                url,
                autocommit=not pooled,
                prepare_threshold=None if pooled else 5,
                cursor_factory=psycopg.RawCursor,
            )
        try:
            self.ask(arrow.SETTINGS)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._arrow is not None:
            self._arrow.close()
            self._arrow = None
        self._connection.close()

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
                connection = self._connection
                # ADBC opens a connection of its own and prepares its queries.
                self._arrow = arrow.CopySource(connection) if self._pooled else arrow.open_source(self._url, connection)
            yield from self._arrow.batches(text, schema)

    @contextmanager
    def _reaching(self) -> Generator[None]:
        try:
            yield
        except (psycopg.Error, *arrow.ERRORS) as error:
            raise failure(self.where, str(error), sqlstate_of(error)) from error
