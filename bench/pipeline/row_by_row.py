"""What a Spark source of a pg-boss queue looks like when it is written in the obvious way: psycopg, a tuple per row.

It runs the statement that jobwire's own source runs, in the same slices; it does not make the JSON texts compact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, LiteralString, cast

import psycopg
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from jobwire import urls
from jobwire.pipeline.schemas import JOBS
from jobwire.pipeline.stores import Wanted
from jobwire.pipeline.stores.pgboss import jobs
from jobwire.pipeline.stores.pgboss.database import Database
from jobwire.pipeline.stores.pgboss.table import find_table

ASKED = JOBS.without(["store", "queue", "name", "position", "parent", "worker"])


class _Overheard(Database):
    """Hears which statement the reader asks for, and answers nothing."""

    heard = ""

    def batches(self, text: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        self.heard = text
        return iter(())


class RowByRow(DataSource):
    """`format("row_by_row")` with the options `url`, `queue` and `parts`."""

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

    def partitions(self) -> Sequence[InputPartition]:
        database = _Overheard(urls.parse(self._url))
        try:
            table = find_table(database, self._queue)
            condition = jobs.condition_of(database, self._queue, Wanted())
            found: list[InputPartition] = []
            for part in jobs.plan(database, table, condition, self._parts):
                list(jobs.read(database, table, condition + part.condition, "", self._queue))
                found.append(InputPartition(database.heard))
            return found
        finally:
            database.close()

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        with (
            psycopg.connect(urls.parse(self._url).driver_url) as connection,
            connection.cursor("rows") as cursor,
        ):
            cursor.itersize = 2000
            cursor.execute(cast("LiteralString", partition.value))
            yield from cursor
