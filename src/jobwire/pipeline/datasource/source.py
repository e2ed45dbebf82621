"""`format("jobwire")`: a live queue as a Spark table and as a Spark stream, and a DataFrame as jobs."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from jobwire.errors import InvalidOption
from jobwire.pipeline.datasource.options import parse_options
from jobwire.pipeline.datasource.readers import EventsReader, EventsStream, FilteringJobsReader, JobsReader
from jobwire.pipeline.datasource.writer import JobWriter
from jobwire.pipeline.lake.schemas import EVENTS, JOBS

_COLUMNS = {"jobs": JOBS, "events": EVENTS}


class JobwireSource(DataSource):
    """The data source that Spark knows as the format `jobwire`."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._parsed = parse_options(dict(options))

    @classmethod
    def name(cls) -> str:
        return "jobwire"

    def schema(self) -> StructType:
        return _COLUMNS[self._parsed.table].spark

    def reader(self, schema: StructType) -> DataSourceReader:
        if self._parsed.table == "events":
            return EventsReader(self._parsed)
        return FilteringJobsReader(self._parsed) if self._parsed.pushdown else JobsReader(self._parsed)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if self._parsed.table != "events":
            raise InvalidOption("table", self._parsed.table, "must be events for a stream: jobs are read in batch")
        return EventsStream(self._parsed)

    def writer(self, schema: StructType, overwrite: bool) -> JobWriter:
        if overwrite:
            raise InvalidOption("mode", "overwrite", "must be append: a queue's jobs are never thrown away by a write")
        return JobWriter(self._parsed, schema)
