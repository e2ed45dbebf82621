"""Sources of a load: CSV files, JSON lines, Parquet, any table that Spark knows, any DataFrame."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from jobwire.errors import InvalidOption, JobwireError
from jobwire.pipeline.stores.ids import digest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("csv", "json", "parquet", "table")
CORRUPT = "_corrupt_record"
_ENDINGS = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}
_PACKED = ("gz", "bz2", "zst", "lz4", "snappy")


@dataclass(frozen=True)
class Loadable:
    """Rows to load. `lines`: each row is one JSON text in the column `value`. Read like this, a key that a line lacks
    is absent from its job; a schema over all lines would fill it with null."""

    frame: DataFrame
    lines: bool
    identity: str
    """Identifies the source: stays the same as long as names, sizes and times of its files do. New every time for a
    DataFrame."""


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
            given = {"header": "true", "inferSchema": str(infer).lower(), **given}
            if source.lower().split(".")[-1] == "tsv":
                given.setdefault("sep", "\t")
            frame, identity = _csv(spark, source, given), _files_identity(spark, source)
        case "json":
            frame, identity = _read(spark, "text", source, given), _files_identity(spark, source)
        case "parquet":
            frame, identity = _read(spark, "parquet", source, given), _files_identity(spark, source)
        case "table":
            if not spark.catalog.tableExists(source):
                known = ", ".join(sorted(set(_ENDINGS)))
                rule = f"must be a table that Spark knows, or a path that ends in one of {known} (else give the format)"
                raise InvalidOption("source", source, rule)
            frame = spark.table(source)
            identity = digest("table", source, *sorted(frame.inputFiles()))
        case _:
            raise InvalidOption("format", kind, f"must be one of {', '.join(FORMATS)}")
    return Loadable(frame, lines=kind == "json", identity=identity)


def kind_of(source: str) -> str:
    """
    >>> [kind_of(source) for source in ("a/b.csv.gz", "s3a://bucket/day=1/*.ndjson", "sales.orders")]
    ['csv', 'json', 'table']
    """
    endings = PurePosixPath(source.rstrip("/")).name.lower().split(".")[1:]
    if endings and endings[-1] in _PACKED:
        endings.pop()
    return _ENDINGS.get(endings[-1] if endings else "", "table")


def _csv(spark: SparkSession, path: str, options: Mapping[str, str]) -> DataFrame:
    """Adds a column for the text of records that don't fit the header: Spark would cut or fill them silently."""
    from pyspark.sql.types import StringType, StructType  # noqa: PLC0415 an extra

    plain = _read(spark, "csv", path, options)
    schema = StructType([*plain.schema.fields]).add(CORRUPT, StringType())
    kept = {name: value for name, value in options.items() if name != "inferSchema"}
    reader = spark.read.format("csv").options(**cast("dict[str, Any]", kept)).schema(schema)
    return reader.option("columnNameOfCorruptRecord", CORRUPT).load(path)


def _read(spark: SparkSession, kind: str, path: str, options: Mapping[str, str]) -> DataFrame:
    from pyspark.errors import AnalysisException  # noqa: PLC0415 an extra

    try:
        return spark.read.format(kind).options(**cast("dict[str, Any]", dict(options))).load(path)
    except AnalysisException as error:
        raise JobwireError(f"{path} can't be read as {kind}: {str(error).splitlines()[0]}") from error


def _files_identity(spark: SparkSession, path: str) -> str:
    # The format `binaryFile` lists files on every file system that Spark reaches; contents are not read.
    listed = spark.read.format("binaryFile").load(path).select("path", "length", "modificationTime").collect()
    return digest("files", *sorted(f"{path} {size} {time.timestamp()}" for path, size, time in listed))
