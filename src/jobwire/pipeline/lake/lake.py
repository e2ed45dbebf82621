"""The lake: the only module that writes tables.

    lake.json                                   the format of all tables
    bronze/events/<source>/                     written by a stream, for Spark alone: it hides incomplete batches
    bronze/job_snapshots/<source>/              a part for each ingest
    bronze/deliveries/<source>/                 the same for the messages of campaigns
    bronze/campaigns, bronze/channels/<source>/ as they were at the last ingest
    silver/events, silver/jobs, silver/attempts, silver/deliveries
                                                a part for each day
    gold/<table>, quarantine                    a part for each day if it is hourly or daily, else one part
    archive, quarantine_load, work, work_runs   a part for each day of each run; rows are only added
    workings/                                   what a command needs again after a crash; not a table
    checkpoints/, runs/, locks/

Rows are written to a new folder first, read back and counted, and then the table's pointer is replaced in one step. A
crash at any moment leaves the table as it was. The next publication removes the files of the unfinished one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from jobwire.errors import JobwireError
from jobwire.pipeline.lake import counting, pointers, run_log
from jobwire.pipeline.lake.counting import Counted
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import WHOLE, Part, Pointer
from jobwire.pipeline.lake.schemas import BRONZE_EVENTS, RUNS, Columns
from jobwire.pipeline.lake.tables import (
    BY_DAY,
    DELIVERIES_BY_DAY,
    GOLD_BY_DAY,
    REACHING,
    SNAPSHOT_TABLES,
    SUMMARIES,
    columns_of,
    has_days,
    is_one_part,
)

__all__ = ["BY_DAY", "SUMMARIES", "EventSink", "Lake", "Staged", "folder_of"]

_EVENTS = "bronze/events"
_PART = "part"
_LITTLE_ROWS, _LITTLE_BYTES = 500_000, 20_000_000


@dataclass(frozen=True)
class EventSink:
    """The folder of a stream of bronze events; partitioned by `day`."""

    path: str
    checkpoint: str
    format: str


@dataclass(frozen=True)
class Staged:
    """Rows that are written and not yet published."""

    table: str
    columns: Columns
    run: str
    parts: Mapping[str, Part]
    onto: int
    """The generation of the pointer that they are to replace."""

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts.values())


class Lake:
    """The tables under a root, all in one format that the Spark session can write: parquet, delta, iceberg."""

    def __init__(self, root: str, format: str = "parquet") -> None:  # noqa: A002 Spark's own word
        self.files = LakeFiles(root)
        self.root = root
        self.format = format
        begun = self.files.read("lake.json")
        if begun is not None and begun["format"] != format:
            raise JobwireError(
                f"the lake at {root} was begun as {begun['format']} and can't be gone on with as {format}: "
                f"ask for {begun['format']}, or choose another folder"
            )
        self._begun = begun is not None

    def event_sink(self, source: str) -> EventSink:
        """Returns the folders for the events of one source, a queue in a store."""
        self._begin()
        name = folder_of(source)
        return EventSink(
            self.files.for_spark(f"{_EVENTS}/{name}"),
            self.files.for_spark(f"checkpoints/events/{name}"),
            self.format,
        )

    def bronze_events(self, spark: SparkSession) -> DataFrame:
        """Returns the events of all sources, with the column `source` for the folder that they are in."""
        frames = [
            self._read(spark, f"{_EVENTS}/{name}", BRONZE_EVENTS).withColumn("source", F.lit(name))
            for name in self.files.folders(_EVENTS)
            if self.files.folders(f"{_EVENTS}/{name}")
        ]
        return _union(spark, frames, BRONZE_EVENTS.plus("source string"))

    @property
    def is_little(self) -> bool:
        """Returns whether the lake has rows, and so few that starting Spark takes longer than its work on them. An
        empty one may be about to get millions. Needs no Spark."""
        pointers = [self.pointer(name) for name in (*BY_DAY, *DELIVERIES_BY_DAY)]
        rows = sum(pointer.rows for pointer in pointers if pointer is not None)
        rows += sum(self.snapshot_rows(table=table) for table in SNAPSHOT_TABLES)
        size = self.files.bytes(_EVENTS)
        return (rows > 0 or size > 0) and rows < _LITTLE_ROWS and size < _LITTLE_BYTES

    def bronze_state(self) -> dict[str, Any]:
        """Returns numbers that differ once anything was ingested. Needs no Spark."""
        events = {name: self._newest(f"{_EVENTS}/{name}") for name in self.files.folders(_EVENTS)}
        return {"events": events, **{table: self.snapshot_generations(table) for table in SNAPSHOT_TABLES}}

    def add_snapshot(self, source: str, rows: DataFrame, run: str, table: str = "jobs") -> int:
        """Publishes rows of a source as they are now, beside those of earlier ingests. `table` is a name of
        SNAPSHOT_TABLES. Returns how many rows there were."""
        staged = self.stage(f"{SNAPSHOT_TABLES[table]}/{folder_of(source)}", rows, run)
        self.publish(staged, replacing=())
        return staged.rows

    def replace_snapshot(self, source: str, rows: DataFrame, run: str, table: str) -> int:
        """Publishes rows of a source as they are now, in place of those of earlier ingests."""
        staged = self.stage(f"{SNAPSHOT_TABLES[table]}/{folder_of(source)}", rows, run)
        self.publish(staged)
        return staged.rows

    def snapshot_generations(self, table: str = "jobs") -> dict[str, int]:
        """Returns how often each source was published. Parts of a later generation are new."""
        root = SNAPSHOT_TABLES[table]
        found = {name: self.pointer(f"{root}/{name}") for name in self.files.folders(root)}
        return {name: pointer.generation for name, pointer in found.items() if pointer is not None}

    def snapshot_rows(self, after: Mapping[str, int] | None = None, table: str = "jobs") -> int:
        """Returns the number of rows in the snapshots of all sources, or in those of later generations than the given
        ones."""
        root = SNAPSHOT_TABLES[table]
        found = [(name, self.pointer(f"{root}/{name}")) for name in self.files.folders(root)]
        return sum(
            part.rows
            for name, pointer in found
            if pointer is not None
            for part in pointer.parts.values()
            if part.generation > (after or {}).get(name, 0)
        )

    def snapshots(self, spark: SparkSession, after: Mapping[str, int] | None = None, table: str = "jobs") -> DataFrame:
        """Returns the snapshots of all sources, or those of later generations than the given ones."""
        root = SNAPSHOT_TABLES[table]
        frames: list[DataFrame] = []
        for name in self.files.folders(root):
            pointer = self.pointer(f"{root}/{name}")
            known = (after or {}).get(name, 0)
            new = {} if pointer is None else {k: p for k, p in pointer.parts.items() if p.generation > known}
            frames.extend(self._parts(spark, f"{root}/{name}", new, columns_of(root)))
        return _union(spark, frames, columns_of(root))

    def table(self, spark: SparkSession, name: str, days: Collection[str] | None = None) -> DataFrame:
        """Returns a published table, or some days of one that has days; empty if it was never published."""
        columns = columns_of(name)
        pointer = self.pointer(name)
        parts = {} if pointer is None else {k: p for k, p in pointer.parts.items() if days is None or _day(k) in days}
        return _union(spark, self._parts(spark, name, parts, columns), columns)

    def pointer(self, name: str) -> Pointer | None:
        """Returns the parts of the table, or None if it was never published."""
        return pointers.load(self.files, name)

    def stage(self, name: str, rows: DataFrame, run: str) -> Staged:
        """Writes rows where no reader looks, and reads them back. Every day of a table of days becomes a part."""
        self._begin()
        days = has_days(name)
        columns = columns_of(name)
        before = self.pointer(name)
        folder = f"v-{run}"
        path = self.files.for_spark(f"{name}/{folder}")
        self.files.remove(f"{name}/{folder}")
        writer_rows = rows.select(*columns.names)
        if name in GOLD_BY_DAY:
            day = F.col("day") if GOLD_BY_DAY[name] == "day" else counting.day_of("hour")
            writer_rows = writer_rows.withColumn(_PART, day.cast("string")).coalesce(1)
        elif days:
            # The day stays a column of the files, for readers that don't know partitions.
            writer_rows = writer_rows.withColumn(_PART, F.date_format("day", "yyyy-MM-dd")).hint("rebalance", _PART)
        writer = writer_rows.write.format(self.format)
        (writer.partitionBy(_PART) if days else writer).save(path)
        parts = {
            one.key: Part(self._folder_of_part(folder, one.key, days), one.rows, one.checksum, reaches=one.reaches)
            for one in self._counted(rows.sparkSession, name, folder, run)
        }
        return Staged(name, columns, run, parts, 0 if before is None else before.generation)

    def publish(self, staged: Staged, replacing: Collection[str] | None = None) -> Pointer:
        """Makes staged rows the table, or its parts `replacing`: one of these that was not staged again is removed."""
        before = self.pointer(staged.table)
        generation = 0 if before is None else before.generation
        if generation != staged.onto:
            raise JobwireError(
                f"{staged.table} in the lake at {self.root} was published by another run meanwhile"
                f"{'' if before is None else f' ({before.run})'}: run this one again"
            )
        kept: dict[str, Part] = {}
        if before is not None and replacing is not None:
            kept = {key: part for key, part in before.parts.items() if key not in replacing}
        new = {key: replace(part, generation=generation + 1) for key, part in staged.parts.items()}
        pointer = Pointer(
            table=staged.table,
            format=self.format,
            columns=staged.columns.ddl,
            run=staged.run,
            published_at=datetime.now(UTC).isoformat(),
            generation=generation + 1,
            parts=dict(sorted((kept | new).items())),
            previous=() if before is None else before.folders,
            root=self.files.root,
        )
        pointers.save(self.files, pointer)
        self._tidy(pointer)
        return pointer

    def append(self, name: str, rows: DataFrame, run: str, label: str | None = None) -> int:
        """Publishes rows beside those that are there. Rows of the same label are replaced, so that a repeated run does
        not add them twice. Returns how many there were."""
        staged = self.stage(name, rows, run)
        keyed = {f"{day}@{label or run}": part for day, part in staged.parts.items()}
        before = self.pointer(name)
        same = [key for key in (before.parts if before else ()) if key.partition("@")[2] == (label or run)]
        self.publish(replace(staged, parts=keyed), replacing=same)
        return staged.rows

    def set_aside(self, name: str, rows: DataFrame) -> None:
        """Writes rows that a command needs again after a crash. They count once the command has recorded them."""
        rows.write.format("parquet").mode("overwrite").save(self.files.for_spark(f"workings/{name}"))
        self.files.write(f"workings/{name}.schema.json", rows.schema.jsonValue())

    def aside(self, spark: SparkSession, name: str) -> DataFrame:
        """Returns rows that were set aside."""
        schema = self.files.read(f"workings/{name}.schema.json")
        # Without its schema, Spark would run a job to find it in the files.
        reader = spark.read if schema is None else spark.read.schema(StructType.fromJson(schema))
        return reader.parquet(self.files.for_spark(f"workings/{name}"))

    def run(self, command: str, **notes: Any) -> AbstractContextManager[run_log.Run]:
        """Records a run of a command in the lake's run log."""
        self._begin()
        return run_log.recorded(self.files, command, **notes)

    def runs(self, spark: SparkSession) -> DataFrame:
        """Returns the run log as a table."""
        found = [tuple(row[name] for name in RUNS.names) for row in run_log.rows(self.files)]
        return spark.createDataFrame(found, RUNS.spark)

    def _begin(self) -> None:
        if not self._begun:
            self.files.write("lake.json", {"format": self.format})
            self._begun = True

    def _folder_of_part(self, folder: str, key: str, days: bool) -> str:
        return f"{folder}/{_PART}={key}" if days and self.format == "parquet" else folder

    def _counted(self, spark: SparkSession, name: str, folder: str, run: str) -> Iterator[Counted]:
        """Yields the parts that were written. Snapshots get no checksum: they may be large, and nothing compares it."""
        path, columns = f"{name}/{folder}", columns_of(name)
        if self.format == "parquet" and name in GOLD_BY_DAY:
            for part in self.files.folders(path):
                yield counting.by_arrow(self.files, f"{path}/{part}", columns, part.partition("=")[2])
        elif has_days(name):
            written = self._written(spark, path, columns.plus(f"{_PART} string"))
            yield from counting.by_spark(written, columns, _PART, REACHING.get(name))
        elif self.format != "parquet":
            rows = self._written(spark, path, columns).withColumn(_PART, F.lit(WHOLE))
            counted = next(counting.by_spark(rows, columns, _PART), Counted(WHOLE, 0, 0))
            yield counted if is_one_part(name) else counted._replace(key=run)
        elif is_one_part(name):
            yield counting.by_arrow(self.files, path, columns, WHOLE)
        else:
            yield Counted(run, self.files.count(path), 0)

    def _written(self, spark: SparkSession, path: str, columns: Columns) -> DataFrame:
        reader = spark.read.format(self.format)
        reader = reader.schema(columns.spark) if self.format == "parquet" else reader
        return reader.load(self.files.for_spark(path))

    def _parts(
        self, spark: SparkSession, name: str, parts: Mapping[str, Part], columns: Columns
    ) -> Iterator[DataFrame]:
        """Returns the parts of a table: Parquet folders in one scan, other formats, whose folders are tables, one by
        one."""
        folders = sorted({part.folder for part in parts.values()})
        paths = [self.files.for_spark(f"{name}/{folder}") for folder in folders]
        if self.format == "parquet":
            if paths:
                yield spark.read.schema(columns.spark).parquet(*paths)
            return
        for folder, path in zip(folders, paths, strict=True):
            rows = spark.read.format(self.format).load(path)
            keys = [_day(key) for key, part in parts.items() if part.folder == folder]
            yield (rows.where(F.col(_PART).cast("string").isin(*keys)) if has_days(name) else rows).select(
                *columns.names
            )

    def _read(self, spark: SparkSession, path: str, columns: Columns) -> DataFrame:
        return self._written(spark, path, columns).select(*columns.names)

    def _newest(self, folder: str) -> str:
        """Returns the last batch in the log of a stream's sink; of a folder without one, the names of all files."""
        batches = [int(name.partition(".")[0]) for name in self.files.files(f"{folder}/_spark_metadata")]
        if batches:
            return str(max(batches))
        names = [[one, *self.files.files(f"{folder}/{one}")] for one in self.files.folders(folder)]
        return hashlib.sha256(repr(names).encode()).hexdigest()

    def _tidy(self, pointer: Pointer) -> None:
        """Removes what neither this pointer nor the one before names: older versions, and what crashes left."""
        wanted = {*pointer.folders, *pointer.previous}
        versions = {folder.partition("/")[0] for folder in wanted}
        for version in self.files.folders(pointer.table):
            if not version.startswith("v-"):
                continue
            if version not in versions:
                self.files.remove(f"{pointer.table}/{version}")
                continue
            for part in self.files.folders(f"{pointer.table}/{version}"):
                inner = f"{version}/{part}"
                if part.startswith(f"{_PART}=") and self.format == "parquet" and inner not in wanted:
                    self.files.remove(f"{pointer.table}/{inner}")


def _day(key: str) -> str:
    """Returns the day of a part's key."""
    return key.partition("@")[0]


def folder_of(source: str) -> str:
    """Returns a folder's name for any text: its readable part, and a digest that keeps two of them apart.

    >>> folder_of("bullmq+redis://a/emails")
    'bullmq-redis-a-emails-5fa71bc5'
    """
    readable = re.sub(r"[^A-Za-z0-9]+", "-", source).strip("-")[:60]
    return f"{readable}-{hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _union(spark: SparkSession, frames: Iterator[DataFrame] | Sequence[DataFrame], columns: Columns) -> DataFrame:
    found = [*frames]
    return reduce(DataFrame.unionByName, found) if found else spark.createDataFrame([], columns.spark)
