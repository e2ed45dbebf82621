"""The lake: the only module that writes tables.

    lake.json                                   the format of all tables
    bronze/events/<source>/                     a part for each day of each batch of a stream
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
crash at any moment leaves the table as it was. The next publication removes the files of the unfinished one. Nothing in
a lake names the lake's own root.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from jobwire.errors import JobwireError
from jobwire.pipeline.lake import counting, events, pointers, run_log
from jobwire.pipeline.lake.counting import Counted
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import WHOLE, Part, Pointer
from jobwire.pipeline.lake.publication import Replacing, Staged, next_pointer
from jobwire.pipeline.lake.schemas import BRONZE_EVENTS, RUNS, Columns
from jobwire.pipeline.lake.tables import (
    BY_DAY,
    DELIVERIES_BY_DAY,
    EVENTS,
    GOLD_BY_DAY,
    REACHING,
    SNAPSHOT_TABLES,
    SUMMARIES,
    columns_of,
    has_days,
    is_events,
    is_one_part,
)
from jobwire.pipeline.lake.versions import folder_of_run, remove_replaced

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["BY_DAY", "SUMMARIES", "Lake", "folder_of"]

_PART = "part"
_LITTLE_ROWS, _LITTLE_BYTES = 500_000, 20_000_000
_FEW_ROWS = 200_000
_FEW_DAYS = 4
"""Days whose files this process counts: more would be many requests, one after the other."""


class Lake:
    """The tables under a root, all in one format that the Spark session can write: parquet, delta, iceberg."""

    def __init__(self, root: str, format: str = "parquet") -> None:  # noqa: A002 Spark's own word
        self.files = LakeFiles(root)
        self.root = root
        self.format = format
        self._begun = self._has_begun()
        self._run: str | None = None

    def events_writer(self, stream: DataFrame, source: str) -> DataStreamWriter:
        """Returns the writer of a stream of events of one source into bronze, not started yet."""
        self._begin()
        name = folder_of(source)
        events.remove_unfinished(self.files, name)
        if self.format == "parquet":
            events.adopt(self, stream.sparkSession, name)
            writer = stream.writeStream.foreachBatch(events.EventBatches(self.files.root, name, self._run))
        else:
            path = self.files.for_spark(f"{EVENTS}/{name}")
            writer = stream.writeStream.format(self.format).partitionBy("day").option("path", path)
        return writer.option("checkpointLocation", self.files.for_spark(events.checkpoint_of(name)))

    def add_events(self, folder: str, rows: DataFrame, run: str | None, batch: str) -> int:
        """Publishes a batch of events beside those that are there, once: one that is there already is left out.
        `folder` is that of the source. Returns how many rows were published."""
        name = f"{EVENTS}/{folder}"
        before = self.pointer(name)
        if before is not None and any(_label(key) == batch for key in before.parts):
            return 0
        staged = self.stage(name, rows, f"{run or batch}-{uuid4().hex[:8]}")
        if staged.rows:
            self._add(staged, batch)
        return staged.rows

    def bronze_events(
        self,
        spark: SparkSession,
        after: Mapping[str, Any] | None = None,
        days: Collection[str] | None = None,
        *,
        until: Mapping[str, Any] | None = None,
    ) -> DataFrame:
        """Returns the events of all sources, with the column `source` for the folder that they are in. Of a source in
        `after`, parts of that generation or an earlier one may be left out, of one in `until` parts of a later one;
        with `days`, parts of other days."""
        frames: list[DataFrame] = []
        for name in self.files.folders(EVENTS):
            path = f"{EVENTS}/{name}"
            if self.format == "parquet":
                events.adopt(self, spark, name)
                pointer, known = self.pointer(path), (after or {}).get(name)
                parts = {} if pointer is None else pointer.parts
                if isinstance(known, int):
                    parts = {key: part for key, part in parts.items() if part.generation > known}
                if isinstance(last := (until or {}).get(name), int):
                    parts = {key: part for key, part in parts.items() if part.generation <= last}
                if days is not None:
                    parts = {key: part for key, part in parts.items() if _day(key) in days}
                found = [self.parts(spark, path, parts)] if parts else []
            else:
                found = [self._read(spark, path, BRONZE_EVENTS)] if self.files.folders(path) else []
            frames.extend(frame.withColumn("source", F.lit(name)) for frame in found)
        return _union(spark, frames, BRONZE_EVENTS.plus("source string"))

    @property
    def is_little(self) -> bool:
        """Returns whether the lake has rows, and so few that starting Spark takes longer than its work on them. An
        empty one may be about to get millions. Needs no Spark."""
        pointers = [self.pointer(name) for name in (*BY_DAY, *DELIVERIES_BY_DAY)]
        rows = sum(pointer.rows for pointer in pointers if pointer is not None)
        rows += sum(self.snapshot_rows(table=table) for table in SNAPSHOT_TABLES)
        found = [self.pointer(f"{EVENTS}/{name}") for name in self.files.folders(EVENTS)]
        rows += sum(pointer.rows for pointer in found if pointer is not None)
        size = 0 if self.format == "parquet" else self.files.bytes(EVENTS)
        return (rows > 0 or size > 0) and rows < _LITTLE_ROWS and size < _LITTLE_BYTES

    def bronze_state(self) -> dict[str, Any]:
        """Returns numbers that differ once anything was ingested. Needs no Spark."""
        newest = {name: self._newest(f"{EVENTS}/{name}") for name in self.files.folders(EVENTS)}
        return {"events": newest, **{table: self.snapshot_generations(table) for table in SNAPSHOT_TABLES}}

    def add_snapshot(
        self, source: str, rows: DataFrame, run: str, table: str = "jobs", at: datetime | None = None
    ) -> int:
        """Publishes rows of a source as they are now, beside those of earlier ingests. `table` is a name of
        SNAPSHOT_TABLES, `at` the time in the column `seen_at` of all rows. Returns how many rows there were."""
        staged = self.stage(f"{SNAPSHOT_TABLES[table]}/{folder_of(source)}", rows, run)
        days = None if at is None else [f"{at.astimezone(UTC):%Y-%m-%d}"]
        parts = {key: replace(part, reaches=days) for key, part in staged.parts.items()}
        self.publish(replace(staged, parts=parts, onto=None), replacing=())
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

    def snapshots(
        self,
        spark: SparkSession,
        after: Mapping[str, int] | None = None,
        table: str = "jobs",
        *,
        until: Mapping[str, int] | None = None,
        also: Callable[[str], bool] | None = None,
    ) -> DataFrame:
        """Returns the snapshots of all sources, or those of later generations than `after` and none later than `until`.
        With `also`, which is called with the days on which jobs were seen, those of earlier generations for which it is
        true as well."""
        root = SNAPSHOT_TABLES[table]
        frames: list[DataFrame] = []
        for name in self.files.folders(root):
            pointer = self.pointer(f"{root}/{name}")
            if pointer is None:
                continue
            known = (after or {}).get(name, 0)
            last = pointer.generation if until is None else until.get(name, 0)
            wanted = {
                key: part
                for key, part in pointer.parts.items()
                if part.generation <= last and (part.generation > known or (also is not None and _taken(part, also)))
            }
            if wanted:
                frames.append(self.parts(spark, f"{root}/{name}", wanted))
        return _union(spark, frames, columns_of(root))

    def table(self, spark: SparkSession, name: str, days: Collection[str] | None = None) -> DataFrame:
        """Returns a published table, or some days of one that has days; empty if it was never published."""
        pointer = self.pointer(name)
        parts = {} if pointer is None else {k: p for k, p in pointer.parts.items() if days is None or _day(k) in days}
        return self.parts(spark, name, parts) if parts else _union(spark, [], columns_of(name))

    def small_table(self, spark: SparkSession, name: str) -> DataFrame:
        """Returns a published table whose days have few rows each. This process reads them: for Spark, each file costs
        ten times as long."""
        pointer = self.pointer(name)
        if self.format != "parquet" or pointer is None or not 0 < pointer.rows < _FEW_ROWS:
            return self.table(spark, name)
        return spark.createDataFrame(pointers.read_table(self.root, name), columns_of(name).spark)

    def parts(self, spark: SparkSession, name: str, parts: Mapping[str, Part]) -> DataFrame:
        """Returns one or more parts of a table: Parquet folders in one scan, other formats, whose folders are tables,
        one by one."""
        columns = columns_of(name)
        folders = sorted({part.folder for part in parts.values()})
        paths = [self.files.for_spark(f"{name}/{folder}") for folder in folders]
        if self.format == "parquet":
            return spark.read.schema(columns.spark).parquet(*paths)
        frames: list[DataFrame] = []
        for folder, path in zip(folders, paths, strict=True):
            rows = spark.read.format(self.format).load(path)
            added = {name: kind for name, kind in columns.fields if name not in rows.columns}
            rows = rows.withColumns({name: F.lit(None).cast(kind) for name, kind in added.items()})  # of older parts
            keys = [_day(key) for key, part in parts.items() if part.folder == folder]
            rows = rows.where(F.col(_PART).cast("string").isin(*keys)) if has_days(name) else rows
            frames.append(rows.select(*columns.names))
        return _union(spark, frames, columns)

    def pointer(self, name: str) -> Pointer | None:
        """Returns the parts of the table, or None if it was never published."""
        return pointers.load(self.files, name)

    def stage(self, name: str, rows: DataFrame, run: str) -> Staged:
        """Writes rows where no reader looks, and reads them back. Every day of a table of days becomes a part."""
        self._begin()
        days = has_days(name)
        columns = columns_of(name)
        before = self.pointer(name)
        folder = folder_of_run(run)
        path = self.files.for_spark(f"{name}/{folder}")
        self.files.remove(f"{name}/{folder}")
        writer_rows = rows.select(*columns.names)
        if name in GOLD_BY_DAY:
            day = F.col("day") if GOLD_BY_DAY[name] == "day" else counting.day_of("hour")
            writer_rows = writer_rows.withColumn(_PART, day.cast("string")).coalesce(1)
        elif is_events(name):
            writer_rows = writer_rows.withColumn(_PART, F.date_format("day", "yyyy-MM-dd"))
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

    def publish(self, staged: Staged, replacing: Replacing = None) -> Pointer:
        """Makes staged rows the table, or its parts `replacing`: one of these that was not staged again is removed."""
        while True:
            before, version = pointers.load_versioned(self.files, staged.table)
            pointer = next_pointer(staged, before, replacing, self.files.root, self.format)
            # Refused if another one was published in this moment: then it is `before` of the next round.
            if pointers.save(self.files, pointer, version):
                remove_replaced(self.files, pointer, before)
                return pointer

    def append(self, name: str, rows: DataFrame, run: str, label: str | None = None) -> int:
        """Publishes rows beside those that are there. Rows of the same label are replaced, so that a repeated run does
        not add them twice. Returns how many there were."""
        staged = self.stage(name, rows, run)
        self._add(staged, label or run)
        return staged.rows

    def _add(self, staged: Staged, label: str) -> None:
        keyed = {f"{day}@{label}": part for day, part in staged.parts.items()}
        self.publish(replace(staged, parts=keyed, onto=None), replacing=lambda key: _label(key) == label)

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

    @contextmanager
    def run(self, command: str, **notes: Any) -> Generator[run_log.Run]:
        """Records a run of a command in the lake's run log."""
        self._begin()
        with run_log.recorded(self.files, command, **notes) as run:
            self._run = run.id
            try:
                yield run
            finally:
                self._run = None

    def runs(self, spark: SparkSession) -> DataFrame:
        """Returns the run log as a table."""
        found = [tuple(row[name] for name in RUNS.names) for row in run_log.rows(self.files)]
        return spark.createDataFrame(found, RUNS.spark)

    def _begin(self) -> None:
        """Records the format. Of two that begin a lake at once, one records it, and the other keeps to it."""
        if not self._begun:
            self.files.replace("lake.json", {"format": self.format}, None)
            self._begun = self._has_begun()

    def _has_begun(self) -> bool:
        """Returns whether the lake has a format, and refuses it if it is another one."""
        begun = self.files.read("lake.json")
        if begun is not None and begun["format"] != self.format:
            raise JobwireError(
                f"the lake at {self.root} was begun as {begun['format']} and can't be gone on with as {self.format}: "
                f"ask for {begun['format']}, or choose another folder"
            )
        return begun is not None

    def _folder_of_part(self, folder: str, key: str, days: bool) -> str:
        return f"{folder}/{_PART}={key}" if days and self.format == "parquet" else folder

    def _counted(self, spark: SparkSession, name: str, folder: str, run: str) -> Iterator[Counted]:
        """Yields the parts that were written. Snapshots get no checksum: they may be large, and nothing compares it."""
        path, columns = f"{name}/{folder}", columns_of(name)
        if self.format == "parquet" and is_events(name):
            days = self.files.folders(path)
            if len(days) <= _FEW_DAYS:
                yield from (Counted(day.partition("=")[2], self.files.count(f"{path}/{day}"), 0) for day in days)
                return
            counts = self._written(spark, path, columns.plus(f"{_PART} string")).groupBy(_PART).count().collect()
            yield from (Counted(row[_PART], row["count"], 0) for row in counts)
        elif self.format == "parquet" and name in GOLD_BY_DAY:
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

    def _read(self, spark: SparkSession, path: str, columns: Columns) -> DataFrame:
        return self._written(spark, path, columns).select(*columns.names)

    def _newest(self, folder: str) -> Any:
        """Returns the generation of a source's events; of a folder that other formats write, the names of its files."""
        pointer = self.pointer(folder)
        if pointer is not None:
            return pointer.generation
        names = [[one, *self.files.files(f"{folder}/{one}")] for one in self.files.folders(folder)]
        return hashlib.sha256(repr(names).encode()).hexdigest()


def _day(key: str) -> str:
    """Returns the day of a part's key."""
    return key.partition("@")[0]


def _taken(part: Part, on: Callable[[str], bool]) -> bool:
    """Returns whether a snapshot was taken on such a day. One whose day is unknown may have been."""
    return part.reaches is None or any(map(on, part.reaches))


def _label(key: str) -> str:
    """Returns what a part's key has beside its day: the run or batch that added it."""
    return key.partition("@")[2]


def folder_of(source: str) -> str:
    """Returns a folder's name for any text: its readable part, and a digest that keeps two of them apart.

    >>> folder_of("bullmq+redis://a/emails")
    'bullmq-redis-a-emails-5fa71bc5'
    """
    readable = re.sub(r"[^A-Za-z0-9]+", "-", source).strip("-")[:60]
    return f"{readable}-{hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _union(spark: SparkSession, frames: Sequence[DataFrame], columns: Columns) -> DataFrame:
    return reduce(DataFrame.unionByName, frames) if frames else spark.createDataFrame([], columns.spark)
