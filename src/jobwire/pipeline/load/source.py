"""Sources of a load: CSV files, JSON lines, Parquet, any table that Spark knows, any DataFrame."""

from __future__ import annotations

import os.path
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from jobwire.errors import InvalidOption
from jobwire.pipeline.load.csv_files import TEXTS, read_csv, read_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("csv", "json", "parquet", "table")
_ENDINGS = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}
_PACKED = ("gz", "bz2", "zst", "lz4", "snappy")


@dataclass(frozen=True)
class Loadable:
    """Rows to load. `lines`: each row is one JSON text in the column `value`. Read like this, a key that a line lacks
    is absent from its job; a schema over all lines would fill it with null."""

    frame: DataFrame
    lines: bool
    identity: str
    """Identifies the source: the path or the table. New every time for a DataFrame."""

    @property
    def inferred(self) -> bool:
        """Returns whether the types of the columns were inferred from the texts of a file."""
        return TEXTS in self.frame.columns


def loadable(
    spark: SparkSession,
    source: DataFrame | str,
    kind: str | None = None,
    *,
    infer: bool = False,
    options: Mapping[str, str] | None = None,
) -> Loadable:
    """Returns the source as rows. A text is a path if its ending is known or `kind` is given, else a table."""
    if not isinstance(source, str):
        return Loadable(source, lines=False, identity=uuid.uuid4().hex)
    kind = kind or kind_of(source)
    given = dict(options or {})
    match kind:
        case "csv":
            frame = read_csv(spark, source, given, infer=infer)
        case "json":
            frame = read_files(spark, "text", source, given)
        case "parquet":
            frame = read_files(spark, "parquet", source, given)
        case "table":
            if not spark.catalog.tableExists(source):
                known = ", ".join(sorted(set(_ENDINGS)))
                rule = f"must be a table that Spark knows, or a path that ends in one of {known} (else give the format)"
                raise InvalidOption("source", source, rule)
            frame = spark.table(source)
        case _:
            raise InvalidOption("format", kind, f"must be one of {', '.join(FORMATS)}")
    return Loadable(frame, lines=kind == "json", identity=identity_of(source, kind))


def kind_of(source: str) -> str:
    """
    >>> [kind_of(source) for source in ("a/b.csv.gz", "s3a://bucket/day=1/*.ndjson", "sales.orders")]
    ['csv', 'json', 'table']
    """
    endings = PurePosixPath(source.rstrip("/")).name.lower().split(".")[1:]
    if endings and endings[-1] in _PACKED:
        endings.pop()
    return _ENDINGS.get(endings[-1] if endings else "", "table")


def identity_of(source: str, kind: str) -> str:
    """Returns what identifies a source: a path however it is written, or a table. Neither the times and sizes of files
    nor their contents: a row that was loaded from here before is known by its own content.

    >>> identity_of("s3a://bucket/orders/", "csv")
    'files s3a://bucket/orders'
    """
    if kind == "table":
        return f"table {source}"
    return (
        f"files {source.rstrip('/') if re.match('[a-z0-9+.-]+:', source, re.IGNORECASE) else os.path.abspath(source)}"
    )
