"""`format("jobwire")`: a live queue as a Spark table and as a Spark stream, a DataFrame or a stream as jobs, and the
tables of campaigns."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from jobwire.errors import InvalidOption
from jobwire.pipeline.datasource.options import parse_options
from jobwire.pipeline.datasource.readers import RefusedStream
from jobwire.pipeline.datasource.tables import TABLES
from jobwire.pipeline.datasource.writer import JobStreamWriter, JobWriter


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
        self._check_schema(schema)
        return self._table.reader(self._parsed)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Returns a stream in any case: Spark 4 hides an error that is raised here behind one of its own."""
        try:
            self._check_schema(schema)
            if self._table.stream is None:
                table = self._parsed.table
                raise InvalidOption("table", table, f"must be events for a stream: {table} are read in batch")
        except InvalidOption as error:
            return RefusedStream(error)
        return self._table.stream(self._parsed)

    def writer(self, schema: StructType, overwrite: bool) -> JobWriter:
        self._check_written()
        if overwrite:
            raise InvalidOption("mode", "overwrite", "must be append: a queue's jobs are never thrown away by a write")
        return JobWriter(self._parsed, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> JobStreamWriter:
        self._check_written()
        if overwrite:
            raise InvalidOption("outputMode", "complete", "must be append: each row of a stream becomes a job once")
        return JobStreamWriter(self._parsed, schema)

    def _check_written(self) -> None:
        if not self._table.written:
            raise InvalidOption("table", self._parsed.table, "must be jobs for a write: other tables are only read")

    def _check_schema(self, schema: StructType) -> None:
        if schema.names != list(self._table.columns.names):
            rule = f"can't be given: the columns of table={self._parsed.table} are {self._table.columns.ddl}"
            raise InvalidOption("schema", schema.simpleString(), rule)
