"""Reads a table of a campaigns' database in Spark's processes. Each call opens the database for itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from jobwire.pipeline.datasource.source_options import SourceOptions
from jobwire.pipeline.stores.campaigns import tables


class CampaignTableReader(DataSourceReader):
    """Reads all rows, once, in balanced partitions."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        with tables.campaign_tables(options.url, options.store) as opened:
            found = opened.plan(options.table, options.wanted, options.parts, changed_from=options.changed_from)
            return [InputPartition(part) for part in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        options = self._options
        with tables.campaign_tables(options.url, options.store) as opened:
            yield from opened.read(options.table, partition.value, options.wanted, changed_from=options.changed_from)
