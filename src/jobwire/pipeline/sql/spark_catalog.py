"""Registers the published tables of a lake in Spark's catalog: `select * from jobwire.silver_jobs`.

The tables of the catalog are external. Their locations are the folders that the pointers name, for each part one of its
own in tables of days, which have a column `part` for it. Nothing is copied, and dropping one of them removes no file.
Locations are those of the moment: register the tables again after a build, which changes what has changed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobwire.errors import InvalidOption
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import Pointer
from jobwire.pipeline.lake.schemas import columns
from jobwire.pipeline.lake.tables import has_days
from jobwire.pipeline.sql.names import published

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_A_TIME = 500
_COLUMNS, _LAKE, _GENERATION = "jobwire.columns", "jobwire.lake", "jobwire.generation"
"""Properties of a table in the catalog, from which the next call knows what to change."""


def register_tables(spark: SparkSession, lake: str, database: str = "jobwire") -> list[str]:
    """Registers every published table of the lake at a root, in a database that is made if it is missing. Returns the
    names of the tables, such as `jobwire.silver_jobs`."""
    if not re.fullmatch(r"[A-Za-z_]\w*", database):
        raise InvalidOption("database", database, "must be a name of letters, digits and underscores")
    files = LakeFiles(lake)
    spark.sql(f"create database if not exists {database}")
    names: list[str] = []
    for name, pointer in published(lake).items():
        table = f"{database}.{name}"
        if has_days(pointer.table):
            _register_days(spark, files, table, pointer)
        else:
            _register_whole(spark, files, table, pointer)
        spark.sql(f"refresh table {table}")
        names.append(table)
    return names


def _register_whole(spark: SparkSession, files: LakeFiles, table: str, pointer: Pointer) -> None:
    [folder] = pointer.folders
    location = _text(files.for_spark(f"{pointer.table}/{folder}"))
    if _registered(spark, table, pointer) is None:
        _create(spark, table, pointer, f"location {location}")
    else:
        spark.sql(f"alter table {table} set location {location}")


def _register_days(spark: SparkSession, files: LakeFiles, table: str, pointer: Pointer) -> None:
    """Adds parts that are new, drops those that are gone, and changes the location of those that were made again."""
    known = _registered(spark, table, pointer)
    if known is None:
        _create(spark, table, pointer, f"partitioned by (part) location {_text(files.for_spark(pointer.table))}")
    present = {row[0].partition("=")[2] for row in spark.sql(f"show partitions {table}").collect()}
    new: list[str] = []
    for key, part in pointer.parts.items():
        spec, location = f"partition (part = {_text(key)})", _text(files.for_spark(f"{pointer.table}/{part.folder}"))
        if key not in present:
            new.append(f"{spec} location {location}")
        elif part.generation > (known or 0):
            spark.sql(f"alter table {table} {spec} set location {location}")
    for start in range(0, len(new), _AT_A_TIME):
        spark.sql(f"alter table {table} add if not exists {' '.join(new[start : start + _AT_A_TIME])}")
    for key in present - set(pointer.parts):
        spark.sql(f"alter table {table} drop if exists partition (part = {_text(key)})")
    spark.sql(f"alter table {table} set tblproperties ({_properties(pointer)})")


def _registered(spark: SparkSession, table: str, pointer: Pointer) -> int | None:
    """Returns the generation of the table that the catalog has. One with other columns or of another lake is dropped,
    and counts as missing."""
    if not spark.catalog.tableExists(table):
        return None
    found = {row["key"]: row["value"] for row in spark.sql(f"show tblproperties {table}").collect()}
    generation = int(found.get(_GENERATION, 0))
    if (found.get(_COLUMNS), found.get(_LAKE)) == (pointer.columns, pointer.root) and generation <= pointer.generation:
        return generation
    spark.sql(f"drop table {table}")
    return None


def _create(spark: SparkSession, table: str, pointer: Pointer, rest: str) -> None:
    given = columns(*pointer.columns.split(", ")).plus(*(["part string"] if has_days(pointer.table) else []))
    spark.sql(f"create table {table} ({given.ddl}) using parquet {rest} tblproperties ({_properties(pointer)})")


def _properties(pointer: Pointer) -> str:
    values = {_COLUMNS: pointer.columns, _LAKE: pointer.root, _GENERATION: str(pointer.generation)}
    return ", ".join(f"{_text(name)} = {_text(value)}" for name, value in values.items())


def _text(value: str) -> str:
    """Returns a literal of Spark's SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
