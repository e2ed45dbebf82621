"""The tables of `format("jobwire")`. A further table is an entry here: its columns, its options, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader

from jobwire import urls
from jobwire.errors import InvalidOption
from jobwire.pipeline.datasource.readers import EventsReader, EventsStream, FilteringJobsReader, JobsReader
from jobwire.pipeline.datasource.source_options import SourceOptions
from jobwire.pipeline.lake.campaign_schemas import CAMPAIGNS, CHANNELS, DELIVERIES
from jobwire.pipeline.lake.schemas import EVENTS, JOBS, Columns
from jobwire.pipeline.stores.address import store_name
from jobwire.pipeline.stores.campaigns.address import database_name

_ANY_TABLE = frozenset({"url", "table", "store", "parts"})
_TIMES = frozenset({"created_from", "created_before", "finished_from", "finished_before"})
_QUEUES = (
    _ANY_TABLE
    | _TIMES
    | {"queue", "queues", "states", "names", "pushdown", "max_rows", "begin", "run", "size_limit"}
    | {"privacy_secret"}
)


def _no_default() -> str:
    raise InvalidOption("url", None, "must be the URL of the campaigns' database, such as postgresql://localhost/app")


@dataclass(frozen=True)
class Table:
    """One table of the data source."""

    columns: Columns
    options: frozenset[str]
    """The names of the options that it takes."""
    default_url: Callable[[], str]
    store_name: Callable[[str], str]
    """Returns the content of the column `store`. Refuses a URL that the table can't be read from."""
    reader: Callable[[SourceOptions], DataSourceReader]
    stream: Callable[[SourceOptions], DataSourceStreamReader] | None = None
    """None: the table is read in batch only."""
    written: bool = False
    """A frame can be written to it."""


def _jobs(options: SourceOptions) -> DataSourceReader:
    return FilteringJobsReader(options) if options.pushdown else JobsReader(options)


def _of_campaigns(columns: Columns, more: frozenset[str] = frozenset()) -> Table:
    def reader(options: SourceOptions) -> DataSourceReader:
        from jobwire.pipeline.datasource.campaign_reader import CampaignTableReader  # noqa: PLC0415 needs a driver

        return CampaignTableReader(options)

    return Table(columns, _ANY_TABLE | more, _no_default, database_name, reader)


TABLES = {
    "jobs": Table(JOBS, _QUEUES, urls.default_url, store_name, _jobs, written=True),
    "events": Table(EVENTS, _QUEUES, urls.default_url, store_name, EventsReader, EventsStream),
    "campaigns": _of_campaigns(CAMPAIGNS),
    "deliveries": _of_campaigns(DELIVERIES, _TIMES | {"changed_from"}),
    "channels": _of_campaigns(CHANNELS),
}
