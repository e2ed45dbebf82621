"""`format("jobwire")`: a live queue as a Spark table and as a Spark stream, a DataFrame as jobs, and the tables of
campaigns."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from jobwire.errors import InvalidOption
from jobwire.pipeline.datasource.options import parse_options
from jobwire.pipeline.datasource.tables import TABLES
from jobwire.pipeline.datasource.writer import JobWriter


class JobwireSource(DataSource):
    """The data source that Spark knows as the format `jobwire`."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._parsed = parse_options(dict(options))
        self._table = TABLES[self._parsed.table]

    @classmethod
    def name(cls) -> str:
        return "jobwire"

    def schema(self) -> StructType:
        return self._table.columns.spark

    def reader(self, schema: StructType) -> DataSourceReader:
        return self._table.reader(self._parsed)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if self._table.stream is None:
            table = self._parsed.table
            raise InvalidOption("table", table, f"must be events for a stream: {table} are read in batch")
        return self._table.stream(self._parsed)

    def writer(self, schema: StructType, overwrite: bool) -> JobWriter:
        if not self._table.written:
            raise InvalidOption("table", self._parsed.table, "must be jobs for a write: other tables are only read")
        if overwrite:
            raise InvalidOption("mode", "overwrite", "must be append: a queue's jobs are never thrown away by a write")
        return JobWriter(self._parsed, schema)
