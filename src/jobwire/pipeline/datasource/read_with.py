"""Reads jobs and makes something else of them in the same process.

A plain read through `format("jobwire")` hands every row from Python to Java, and a function over these rows gets them
from Java again. For a function that keeps little of a job, that is most of the work. Here Spark gets what the function
returns. The read is planned by the driver, where Spark would start processes of its own for each step of planning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from jobwire.pipeline.datasource.readers import JobsReader
from jobwire.pipeline.datasource.source_options import SourceOptions
from jobwire.pipeline.lake.schemas import Columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Made = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Makes batches of other columns from the jobs of one partition. It is pickled for Spark's processes."""


def read_with(spark: SparkSession, options: SourceOptions, made: Made, columns: Columns) -> DataFrame:
    """Returns what is made of the jobs that the options name, in these columns. The read is planned at once, and the
    jobs are read when the rows are."""
    reader = JobsReader(options)
    parts = reader.partitions()

    def task(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from made(reader.read(parts[number]))

    return spark.range(0, len(parts), 1, max(1, len(parts))).mapInArrow(task, columns.ddl)
