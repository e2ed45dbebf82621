"""Reads back what was written, before it is published: how many rows each part has, and their checksum.

A checksum is the sum of a hash over all values of each row, so that equal rows in any order have an equal one. Those of
one table are always made in the same way and can be compared. Small tables are read by this process: for Spark, each
would be two jobs more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import MODULUS
from jobwire.pipeline.lake.schemas import Columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


def by_spark(rows: DataFrame, columns: Columns, part: str) -> Iterator[tuple[str, int, int]]:
    """Yields the parts of the rows, which the column `part` names."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    hashed = F.xxhash64(*columns.names).cast("decimal(38,0)")
    total = F.pmod(F.sum(hashed), F.lit(str(MODULUS)).cast("decimal(38,0)"))
    grouped = rows.groupBy(F.col(part).cast("string").alias("key"))
    for row in grouped.agg(F.count("*").alias("rows"), total.alias("checksum")).collect():
        yield row["key"], row["rows"], int(row["checksum"])


def by_arrow(files: LakeFiles, path: str, columns: Columns) -> tuple[int, int]:
    """Returns the number of rows in a folder, and their checksum."""
    from pandas import util  # noqa: PLC0415 slow to import

    hashes: Any = util.hash_pandas_object  # its stub knows no frames
    rows = checksum = 0
    for batch in files.batches(path, columns.arrow):
        # Pandas has no dates: as objects they would be hashed by their texts.
        plain = pa.table(batch.columns, schema=batch.schema).cast(_without_dates(batch.schema))
        rows += batch.num_rows
        checksum += sum(map(int, hashes(plain.to_pandas(), index=False)))
    return rows, checksum % MODULUS


def _without_dates(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(pa.int32()) if pa.types.is_date(field.type) else field for field in schema])
