"""Reads back what was written, before it is published: how many rows each part has, and their checksum.

A checksum is the sum of a hash over all values of each row, so that equal rows in any order have an equal one. Those of
one table are always made in the same way and can be compared. Small tables are read by this process: for Spark, each
would be two jobs more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import MODULUS
from jobwire.pipeline.lake.schemas import Columns
from jobwire.pipeline.lake.tables import Reach

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame


class Counted(NamedTuple):
    """A part that was written."""

    key: str
    rows: int
    checksum: int
    reaches: Sequence[str] | None = None


def by_spark(rows: DataFrame, columns: Columns, part: str, reach: Reach | None = None) -> Iterator[Counted]:
    """Yields the parts of the rows, which the column `part` names, with the days that its rows reach."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    hashed = F.xxhash64(*columns.names).cast("decimal(38,0)")
    total = F.pmod(F.sum(hashed), F.lit(str(MODULUS)).cast("decimal(38,0)"))
    grouped = rows.groupBy(F.col(part).cast("string").alias("key"))
    reaches = F.lit(None).cast("array<string>") if reach is None else _days(reach)
    for row in grouped.agg(F.count("*").alias("rows"), total.alias("checksum"), reaches.alias("reaches")).collect():
        yield Counted(row["key"], row["rows"], int(row["checksum"]), row["reaches"])


def day_of(time: str) -> Column:
    """Returns the date of a timestamp in UTC, whatever time zone the session has."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    return F.date_from_unix_date(F.floor(F.unix_seconds(time) / 86_400).cast("int"))


def _days(reach: Reach) -> Column:
    """Aggregates the days that rows reach, as sorted texts."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    begin, end = day_of(reach.first), day_of(reach.last)
    days = F.array_compact(F.array(begin, end))
    if reach.between:
        days = F.when(begin.isNull() | end.isNull(), days).otherwise(
            F.sequence(F.least(begin, end), F.greatest(begin, end))
        )
    return F.array_sort(F.array_distinct(F.flatten(F.collect_set(days)))).cast("array<string>")


def by_arrow(files: LakeFiles, path: str, columns: Columns, key: str) -> Counted:
    """Returns the number of rows in a folder, and their checksum."""
    from pandas import util  # noqa: PLC0415 slow to import

    hashes: Any = util.hash_pandas_object  # its stub knows no frames
    rows = checksum = 0
    for batch in files.batches(path, columns.arrow):
        # Pandas has no dates: as objects they would be hashed by their texts.
        plain = pa.table(batch.columns, schema=batch.schema).cast(_without_dates(batch.schema))
        rows += batch.num_rows
        checksum += sum(map(int, hashes(plain.to_pandas(), index=False)))
    return Counted(key, rows, checksum % MODULUS)


def _without_dates(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(pa.int32()) if pa.types.is_date(field.type) else field for field in schema])
