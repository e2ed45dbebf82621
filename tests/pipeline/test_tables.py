"""The lake: what is published is whole, what is not is not seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.lake import Lake, folder_of
from jobwire.pipeline.lake.pointers import read_pointer, read_table
from jobwire.pipeline.lake.run_log import read_runs
from jobwire.pipeline.lake.schemas import RETRIES, SNAPSHOTS
from pipeline.literal_rows import (
    BULLMQ,
    at,
    attempt,
    attempts,
    bronze_events,
    event,
    frame,
    only,
    snapshot,
    values,
)

pytestmark = pytest.mark.xdist_group("spark")


def retries(spark: Any, *numbers: int) -> Any:
    rows = [{**BULLMQ, "name": "größe", "attempts": number, "jobs": 1, "succeeded": 1} for number in numbers]
    return frame(spark, RETRIES, rows)


def publish(lake: Lake, name: str, rows: Any, run: str, replacing: Any = None) -> Any:
    return lake.publish(lake.stage(name, rows, run), replacing)


def versions(lake: str, table: str) -> list[str]:
    return sorted(path.name for path in (Path(lake) / table).iterdir() if path.is_dir())


def test_a_published_table_is_read_by_spark_and_without_it(spark: Any, lake: str) -> None:
    pointer = publish(Lake(lake), "gold/retries", retries(spark, 1, 2), "r1")

    found = read_table(lake, "gold/retries")

    assert sorted(found["attempts"].to_pylist()) == [1, 2]
    assert found.schema.names == list(RETRIES.names)
    assert found["name"][0].as_py() == "größe"
    assert sum(pq.read_table(file).num_rows for file in read_pointer(lake, "gold/retries").files) == 2
    assert values(Lake(lake).table(spark, "gold/retries"), "attempts") == [(1,), (2,)]
    assert (pointer.rows, pointer.run, pointer.format, pointer.columns) == (2, "r1", "parquet", RETRIES.ddl)


def test_equal_rows_have_an_equal_checksum_and_others_another(spark: Any, lake: str) -> None:
    tables = Lake(lake)

    one = publish(tables, "gold/retries", retries(spark, 1, 2, 3), "r1")
    same = publish(tables, "gold/retries", retries(spark, 3, 1, 2).repartition(3), "r2")
    other = publish(tables, "gold/retries", retries(spark, 1, 2, 4), "r3")

    assert one.checksum == same.checksum != other.checksum


def test_what_is_staged_is_not_seen_and_goes_at_the_next_publication(spark: Any, lake: str) -> None:
    tables = Lake(lake)
    publish(tables, "gold/retries", retries(spark, 1), "r1")

    tables.stage("gold/retries", retries(spark, 2), "crashed")

    assert values(tables.table(spark, "gold/retries"), "attempts") == [(1,)]
    assert "v-crashed" in versions(lake, "gold/retries")
    publish(tables, "gold/retries", retries(spark, 3), "r2")
    assert versions(lake, "gold/retries") == ["v-r1", "v-r2"]


def test_a_reader_under_way_can_finish_while_one_new_version_is_published(spark: Any, lake: str) -> None:
    tables = Lake(lake)
    publish(tables, "gold/retries", retries(spark, 1), "r1")
    under_way = tables.table(spark, "gold/retries")

    publish(tables, "gold/retries", retries(spark, 2), "r2")
    assert only(under_way, "attempts") == (1,)

    publish(tables, "gold/retries", retries(spark, 3), "r3")
    assert versions(lake, "gold/retries") == ["v-r2", "v-r3"]


def test_publishing_days_leaves_the_other_days_alone(spark: Any, lake: str) -> None:
    tables = Lake(lake)
    day = 60 * 24
    first = [attempt(0, 1, job_id="a"), attempt(day, day + 1, job_id="b"), attempt(2 * day, 2 * day + 1, job_id="c")]
    publish(tables, "silver/attempts", attempts(spark, *first), "r1")

    again = attempts(spark, attempt(day, day + 2, job_id="B"))
    publish(tables, "silver/attempts", again, "r2", ["2026-03-02", "2026-03-03"])

    assert values(tables.table(spark, "silver/attempts"), "job_id", "day") == [
        ("B", date(2026, 3, 2)),
        ("a", date(2026, 3, 1)),
    ]
    assert values(tables.table(spark, "silver/attempts", ["2026-03-01"]), "job_id") == [("a",)]
    assert sorted(read_table(lake, "silver/attempts")["day"].to_pylist()) == [date(2026, 3, 1), date(2026, 3, 2)]
    publish(tables, "silver/attempts", attempts(spark, attempt(5 * day, None)), "r3", ["2026-03-06"])
    assert versions(lake, "silver/attempts/v-r1") == ["part=2026-03-01"]


def test_a_table_never_published_is_empty(spark: Any, lake: str) -> None:
    assert Lake(lake).table(spark, "gold/retries").count() == 0
    assert Lake(lake).bronze_events(spark).count() == 0
    assert Lake(lake).snapshots(spark).count() == 0
    with pytest.raises(JobwireError, match="has no table gold/retries yet"):
        read_pointer(lake, "gold/retries")


def test_an_empty_table_can_be_published(spark: Any, lake: str) -> None:
    publish(Lake(lake), "gold/retries", retries(spark), "r1")
    publish(Lake(lake), "silver/attempts", attempts(spark), "r1")

    assert Lake(lake).table(spark, "gold/retries").count() == 0
    assert Lake(lake).table(spark, "silver/attempts").count() == 0
    assert read_table(lake, "gold/retries").num_rows == read_pointer(lake, "gold/retries").rows == 0
    assert read_table(lake, "silver/attempts").num_rows == 0


def test_who_stages_onto_an_older_version_is_told_so(spark: Any, lake: str) -> None:
    slow = Lake(lake).stage("gold/retries", retries(spark, 1), "slow")
    publish(Lake(lake), "gold/retries", retries(spark, 2), "quick")

    with pytest.raises(JobwireError, match=r"gold/retries .* was published by another run meanwhile \(quick\)"):
        Lake(lake).publish(slow)
    assert only(Lake(lake).table(spark, "gold/retries"), "attempts") == (2,)


def test_snapshots_add_up_and_new_ones_can_be_told(spark: Any, lake: str) -> None:
    tables = Lake(lake)
    assert tables.add_snapshot("a", frame(spark, SNAPSHOTS, [snapshot(1, "1")]), "r1") == 1
    known = tables.snapshot_generations()

    tables.add_snapshot("a", frame(spark, SNAPSHOTS, [snapshot(2, "2")]), "r2")
    tables.add_snapshot("b", frame(spark, SNAPSHOTS, [snapshot(2, "3")]), "r2")

    assert values(tables.snapshots(spark), "id") == [("1",), ("2",), ("3",)]
    assert values(tables.snapshots(spark, after=known), "id") == [("2",), ("3",)]


def stream_into(spark: Any, tables: Lake, source: str, arrived: Path) -> None:
    """Streams the files of a folder that are new."""
    stream = spark.readStream.schema(bronze_events(spark).schema).option("maxFilesPerTrigger", 1).parquet(str(arrived))
    tables.events_writer(stream, source).trigger(availableNow=True).start().awaitTermination()


def test_bronze_events_are_those_that_streams_committed(spark: Any, lake: str, tmp_path: Path) -> None:
    tables = Lake(lake)
    for source in ("bullmq+redis://a emails", "bullmq+redis://a größe/✓"):
        arrived = tmp_path / f"arrived-{source[-1]}"
        rows = bronze_events(spark, event(0, "added", 0), event(0, "added", 60 * 24))
        rows.coalesce(1).write.parquet(str(arrived))
        stream_into(spark, tables, source, arrived)
        rows.write.parquet(f"{lake}/bronze/events/{folder_of(source)}/v-crashed/part=2026-03-01")

    found = tables.bronze_events(spark)

    assert values(found.groupBy("source").count(), "count") == [(2,), (2,)]
    assert values(found.select("day").distinct(), "day") == [(date(2026, 3, 1),), (date(2026, 3, 2),)]


def test_a_batch_that_a_stream_repeats_after_a_crash_is_published_once(spark: Any, lake: str, tmp_path: Path) -> None:
    tables, arrived = Lake(lake), tmp_path / "arrived"
    for number in (1, 2):
        rows = bronze_events(spark, event(number, "added", 0))
        rows.coalesce(1).write.mode("append").parquet(str(arrived))
    stream_into(spark, tables, "a", arrived)
    checkpoint = Path(lake) / "checkpoints" / "events" / folder_of("a")
    for name in ("1", ".1.crc"):  # as if it had died between the publication and its record
        (checkpoint / "commits" / name).unlink()

    stream_into(spark, tables, "a", arrived)

    assert (checkpoint / "commits" / "1").exists()
    assert tables.bronze_events(spark).count() == 2


def test_events_of_a_release_that_used_the_sink_of_spark_are_adopted(spark: Any, lake: str, tmp_path: Path) -> None:
    tables, folder, arrived = Lake(lake), Path(lake) / "bronze" / "events" / folder_of("a"), tmp_path / "arrived"
    for number in range(12):  # the log of the sink is compacted at the tenth
        rows = bronze_events(spark, event(number, "added", 60 * 24 * (number % 2)))
        rows.coalesce(1).write.mode("append").parquet(str(arrived))
    stream = spark.readStream.schema(bronze_events(spark).schema).option("maxFilesPerTrigger", 1).parquet(str(arrived))
    checkpoint = Path(lake) / "checkpoints" / "events" / folder_of("a")
    writer = stream.writeStream.format("parquet").partitionBy("day").option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start(str(folder)).awaitTermination()
    bronze_events(spark, event(99, "added", 0)).write.parquet(f"{folder}/day=2026-03-01/lost")
    assert (folder / "_spark_metadata" / "9.compact").exists()
    moved = Path(lake).rename(tmp_path / "moved")

    tables = Lake(str(moved))
    bronze_events(spark, event(50, "added", 0)).coalesce(1).write.mode("append").parquet(str(arrived))
    stream_into(spark, tables, "a", arrived)

    assert sorted(int(row[0].rpartition("-")[2]) for row in values(tables.bronze_events(spark), "id")) == [
        *range(12),
        50,
    ]
    assert sorted(path.name[:2] for path in (moved / "bronze" / "events" / folder_of("a")).iterdir()) == [
        "_c",
        "v-",
        "v-",
    ]


def test_a_lake_keeps_its_format(spark: Any, lake: str) -> None:
    publish(Lake(lake), "gold/retries", retries(spark, 1), "r1")

    with pytest.raises(JobwireError, match="was begun as parquet and can't be gone on with as delta: ask for parquet"):
        Lake(lake, "delta")


def test_any_format_of_the_session_will_do(spark: Any, lake: str) -> None:
    tables = Lake(lake, "orc")
    day = 60 * 24
    publish(tables, "silver/attempts", attempts(spark, attempt(0, 1, job_id="a"), attempt(day, None)), "r1")
    publish(tables, "silver/attempts", attempts(spark, attempt(day, None, job_id="B")), "r2", ["2026-03-02"])
    publish(tables, "gold/retries", retries(spark, 1), "r1")

    assert values(tables.table(spark, "silver/attempts"), "job_id") == [("B",), ("a",)]
    assert only(tables.table(spark, "gold/retries"), "attempts") == (1,)


def test_the_diary_tells_how_each_run_ended(spark: Any, lake: str) -> None:
    tables = Lake(lake)
    with tables.run("ingest", queue="emails") as run:
        run.rows_in, run.rows_out = 5, 4
        run.offsets["emails"] = "9-0"
        assert [row["outcome"] for row in read_runs(lake)] == ["running"]
        run.note(gaps=1)
    with pytest.raises(ZeroDivisionError), tables.run("build"):
        _ = 1 / 0
    with pytest.raises(KeyboardInterrupt), tables.run("move"):
        raise KeyboardInterrupt

    found = {row["command"]: row for row in read_runs(lake)}
    assert {name: row["outcome"] for name, row in found.items()} == {
        "ingest": "ok",
        "build": "failed",
        "move": "interrupted",
    }
    assert found["build"]["error"] == "ZeroDivisionError: division by zero"
    assert json.loads(found["ingest"]["notes"]) == {"queue": "emails", "gaps": 1}
    assert only(tables.runs(spark).where("command = 'ingest'"), "rows_in", "rows_out", "offsets", "outcome") == (
        5,
        4,
        '{"emails":"9-0"}',
        "ok",
    )


def test_a_killed_run_is_told_as_interrupted(lake: str) -> None:
    told = """
import os, signal, sys
from jobwire.pipeline.lake import run_log
from jobwire.pipeline.lake.files import LakeFiles
with run_log.recorded(LakeFiles(sys.argv[1]), "build"):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", told, lake], check=False)

    assert [row["outcome"] for row in read_runs(lake)] == ["interrupted"]


def test_one_build_at_a_time(lake: str) -> None:
    with LakeFiles(lake).locked("build"):
        with (
            pytest.raises(JobwireError, match=rf"another build is under way .* \(process {os.getpid()}\)"),
            LakeFiles(lake).locked("build"),
        ):
            pass
        with LakeFiles(lake).locked("ingest"):
            pass
    with LakeFiles(lake).locked("build"):
        pass


def test_a_lake_that_can_not_be_reached_is_an_error_of_ours(spark: Any) -> None:
    with pytest.raises(JobwireError, match=r"the lake at nosuch://x can't be reached: .* No FileSystem for scheme"):
        Lake("nosuch://x")


def test_a_snapshot_of_a_time_is_kept_to_the_microsecond(spark: Any, lake: str) -> None:
    moment = at(0).replace(microsecond=123_457)
    Lake(lake).add_snapshot("a", frame(spark, SNAPSHOTS, [snapshot(1, created_at=moment)]), "r1")

    assert only(Lake(lake).snapshots(spark), "created_at") == (moment,)
