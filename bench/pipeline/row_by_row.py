"""Two sources of a pg-boss queue that read psycopg's rows and hand Spark a tuple for each, to put ours beside.

`obvious` is what one writes on a first day: whole rows, their values made in Python. `statement` runs the statement of
jobwire's own source, so that only the way of the rows differs; it leaves the JSON texts as PostgreSQL prints them.
Both read the slices that jobwire reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, LiteralString, cast

import psycopg
import pyarrow as pa
from psycopg.rows import dict_row
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from jobwire import urls
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.pgboss import jobs
from jobwire.pipeline.stores.pgboss.database import Database
from jobwire.pipeline.stores.pgboss.table import table_of

ASKED = JOBS.without(["store", "queue", "name", "position", "parent", "worker"])
KINDS = ("obvious", "statement")
OWN_COLUMNS = {
    *("id", "name", "state", "data", "priority", "retry_limit", "retry_count", "singleton_key", "output"),
    *("created_on", "start_after", "started_on", "completed_on"),
}


class _Overheard(Database):
    """Hears which statement the reader asks for, and answers nothing."""

    heard = ""

    def batches(self, text: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        self.heard = text
        return iter(())


class RowByRow(DataSource):
    """`format("row_by_row")` with the options `url`, `queue`, `parts` and `kind`."""

    @classmethod
    def name(cls) -> str:
        return "row_by_row"

    def schema(self) -> StructType:
        return ASKED.spark

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(dict(self.options))


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._url, self._queue, self._parts = options["url"], options["queue"], int(options["parts"])
        self._kind = options["kind"]

    def partitions(self) -> Sequence[InputPartition]:
        database = _Overheard(urls.parse(self._url))
        try:
            table = table_of(database, self._queue, {})
            condition = jobs.condition_of(database, [self._queue], Wanted())
            return [
                InputPartition(self._statement(database, table, condition + part.condition))
                for part in jobs.plan(database, table, condition, self._parts)
            ]
        finally:
            database.close()

    def _statement(self, database: _Overheard, table: Any, condition: str) -> str:
        if self._kind == "obvious":
            return f"SELECT * FROM {table.name} j WHERE {condition}"
        list(jobs.read(database, table, condition, "", self._queue))
        return database.heard

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        statement = cast("LiteralString", partition.value)
        with psycopg.connect(urls.parse(self._url).driver_url) as connection:
            if self._kind == "statement":
                with connection.cursor("rows") as cursor:
                    cursor.itersize = 2000
                    cursor.execute(statement)
                    yield from cursor
            else:
                with connection.cursor("rows", row_factory=dict_row) as cursor:
                    cursor.itersize = 2000
                    cursor.execute(statement)
                    yield from map(_job, cursor)


def _job(row: dict[str, Any]) -> tuple[Any, ...]:
    state, output = row["state"], row["output"]
    completed = state == "completed"
    failure = output if isinstance(output, dict) and not completed else {}
    begun = row["started_on"] is not None and state != "active"
    rest = {name: value for name, value in row.items() if name not in OWN_COLUMNS and value is not None}
    return (
        str(row["id"]),
        _state(row),
        state,
        row["priority"],
        row["retry_limit"] + 1,
        row["retry_count"] + begun,
        _text(row["data"]),
        _text(output) if completed and output is not None else None,
        failure.get("message"),
        failure.get("stack"),
        None,
        row["singleton_key"],
        row["created_on"],
        row["start_after"],
        row["started_on"],
        row["completed_on"],
        _text(rest),
        None,
        None,
    )


def _state(row: dict[str, Any]) -> str:
    if row["state"] not in ("created", "retry"):
        return row["state"]
    if row["blocked"]:
        return "waiting_children"
    return "delayed" if row["start_after"] > datetime.now(UTC) else "waiting"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
