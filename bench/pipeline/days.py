"""What one more day costs when many have been built: a lake gets a day after the others, and builds it.

The days before are built at once, in a process of their own. Bronze of a day is written as one ingest leaves it.
"""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from bench.pipeline import dump, lives
from bench.pipeline.building import CORES, TimedLake
from bench.pipeline.memory import cpu_of_java
from bench.pipeline.places import apart, session
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.history.build import build
from jobwire.pipeline.lake.lake import Lake, folder_of
from jobwire.pipeline.lake.pointers import Part
from jobwire.pipeline.lake.publication import Staged
from jobwire.pipeline.lake.tables import SNAPSHOT_TABLES, columns_of
from jobwire.pipeline.spark.utc import utc_day

DAY_MS = 24 * 3_600_000
BEGIN_MS = lives.BEGIN_MS - 365 * DAY_MS
"""So early that no day lies in the future: files are younger than their rows."""


def measure(folder: Path, events: int, days: list[int], memory: str) -> dict[str, Any]:
    """Builds each of these days after all that come before it. The first one should be the second day."""
    root, rows = folder / "lake", list[dict[str, Any]]()
    for day in days:
        apart(_days_before, root, events, day, memory)
        rows.append({"day": day, **apart(_one_more, root, events, day, memory)})
        row = rows[-1]
        print(
            f"day {day}: {row['seconds']:.1f} s, {row['cpu']:.1f} s of a core; without news {row['no_news']:.2f} s",
            flush=True,
        )
        shutil.rmtree(root)
    return {"events": events, "days": rows}


def _days_before(root: Path, events: int, day: int, memory: str) -> None:
    with session(CORES, memory) as spark:
        lake = Lake(str(root))
        jobs = lives.jobs_for(events)
        of_days = spark.range(1, day).withColumnRenamed("id", "number")
        lake.add_events(folder_of(dump.QUEUE), _events(spark, jobs, of_days), None, "before")
        _add_snapshots(lake, _snapshot(spark, jobs, of_days))
        build(spark, lake)


def _add_snapshots(lake: Lake, rows: DataFrame) -> None:
    """Publishes a part for each day, as that many ingests would."""
    name, folder = f"{SNAPSHOT_TABLES['jobs']}/{folder_of(dump.QUEUE)}", "v-before"
    columns = columns_of(name)
    parted = rows.withColumn("part", F.col("run")).repartition("part")
    parted.write.partitionBy("part").parquet(lake.files.for_spark(f"{name}/{folder}"))
    found = {each.partition("=")[2]: f"{folder}/{each}" for each in lake.files.folders(f"{name}/{folder}")}
    parts = {day: Part(at, lake.files.count(f"{name}/{at}"), 0, reaches=[day]) for day, at in found.items()}
    lake.publish(Staged(name, columns, "before", parts, None), replacing=())


def _one_more(root: Path, events: int, day: int, memory: str) -> dict[str, Any]:
    with session(CORES, memory) as spark:
        lake = TimedLake(str(root))
        jobs = lives.jobs_for(events)
        of_day = spark.range(day, day + 1).withColumnRenamed("id", "number")
        lake.add_events(folder_of(dump.QUEUE), _events(spark, jobs, of_day), None, "one-more")
        lake.add_snapshot(dump.QUEUE, _snapshot(spark, jobs, of_day), "one-more", at=_seen_at(day))
        lake.seconds.clear()
        began, used = time.perf_counter(), cpu_of_java()
        result = build(spark, lake)
        seconds, cpu = time.perf_counter() - began, cpu_of_java() - used
        assert result.rows_in > 0, result
        began = time.perf_counter()
        unchanged = build(_no_session, lake)
        assert unchanged.rows == result.rows, (unchanged, result)
        return {
            "seconds": seconds,
            "cpu": cpu,
            "no_news": time.perf_counter() - began,
            "stages": lake.seconds,
            "rows": dict(result.rows),
        }


def _no_session() -> NoReturn:
    raise AssertionError("a run without news needs no Spark")


def _events(spark: Any, jobs: int, days: DataFrame) -> DataFrame:
    """The events of a week, pressed into each of the days."""
    at = _pressed("at")
    return (
        dump.event_rows(spark, jobs)
        .crossJoin(days)
        .withColumn("id", F.concat_ws("-", F.unix_millis(at).cast("string"), F.split_part("id", F.lit("-"), F.lit(2))))
        .withColumn("job_id", _own("job_id"))
        .withColumn("ingested_at", _end_of_day())
        .withColumn("at", at)
        .withColumn("day", utc_day(F.col("at")))
        .drop("number")
    )


def _snapshot(spark: Any, jobs: int, days: DataFrame) -> DataFrame:
    rows = (
        dump.snapshot_rows(spark, jobs)
        .crossJoin(days)
        .withColumn("id", _own("id"))
        .withColumn("seen_at", _end_of_day())
        .withColumn("run", F.date_format("seen_at", "yyyy-MM-dd"))
    )
    for name in ("created_at", "run_at", "started_at", "finished_at"):
        rows = rows.withColumn(name, _pressed(name))
    return rows.drop("number")


def _own(name: str) -> Column:
    """An id that no other day has."""
    return F.concat_ws("-", F.col("number").cast("string"), name)


def _pressed(name: str) -> Column:
    since = (F.unix_millis(name) - lives.BEGIN_MS) / (lives.SPAN_MS // DAY_MS)
    return F.timestamp_millis((since + BEGIN_MS + (F.col("number") - 1) * DAY_MS).cast("bigint"))


def _seen_at(day: int) -> datetime:
    return datetime.fromtimestamp((day * DAY_MS + BEGIN_MS + 3_600_000) / 1000, UTC)


def _end_of_day() -> Column:
    return F.timestamp_millis(F.col("number") * DAY_MS + BEGIN_MS + 3_600_000)
