"""Bronze to gold: the same input gives the same tables, in one build or in many, also after a crash."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobwire.errors import JobwireError
from jobwire.pipeline.history.bronze_input import BronzeInput
from jobwire.pipeline.history.build import BuildResult, build
from jobwire.pipeline.history.gold_changes import GoldChanges
from jobwire.pipeline.history.marks import BUILT, MARKS
from jobwire.pipeline.lake.lake import BY_DAY, SUMMARIES, Lake, folder_of
from jobwire.pipeline.lake.pointers import Part, read_pointer, read_table
from jobwire.pipeline.lake.run_log import read_runs
from jobwire.pipeline.lake.schemas import SILVER_EVENTS, SNAPSHOTS
from jobwire.pipeline.lake.tables import GOLD_BY_DAY
from pipeline.literal_rows import NOON, PGBOSS, at, bronze_events, event, frame, snapshot, values

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]

DAY = 60 * 24
_WITHOUT_ROWS = {"gold/failures_daily"}
"""Tables that get nothing from a job that completes on an unknown worker."""


def ingest(
    spark: Any, lake: Lake, minute: float, events: Iterable[dict[str, Any]], jobs: Iterable[dict[str, Any]]
) -> None:
    """Bronze rows, as an ingest of that minute leaves them."""
    read = [row | {"ingested_at": at(minute)} for row in events]
    lake.add_events("a", bronze_events(spark, *read), None, f"{minute}")
    seen = [row | {"seen_at": at(minute)} for row in jobs]
    lake.add_snapshot("a", frame(spark, SNAPSHOTS, seen), f"r{minute}", at=at(minute))


def life(job: str, minute: float, *, fails: bool = False) -> list[dict[str, Any]]:
    """A job that is added, runs a minute later and ends two minutes later."""
    end = (
        event(0, "failed", minute + 2, job, failedReason="SMTPError: 550")
        if fails
        else event(0, "completed", minute + 2, job)
    )
    return [
        event(0, "added", minute, job, name="welcome"),
        event(1, "waiting", minute, job),
        event(0, "active", minute + 1, job),
        end,
    ]


def no_session() -> NoReturn:
    raise AssertionError("there is nothing to do for Spark")


FIRST = (
    3 * DAY,
    [
        *life("1", 0),
        *life("2", DAY, fails=True),
        *life("daily", 30, fails=True),
        event(0, "added", DAY + 5, "3", name="welcome"),
        event(0, "active", 2 * DAY, "4"),
        event(0, "active", 5, "5") | {"malformed": "not UTF-8"},
        event(7, "gap", DAY, None, after="1-0", before="2-0", lost=3),
    ],
    [snapshot(0, "1", state="completed", created_at=NOON, finished_at=at(2), payload="{}", attempts_made=1)],
)
LATER = (
    5 * DAY,
    [
        *life("1", 0),  # read twice
        event(0, "active", DAY + 6, "3"),
        event(0, "completed", DAY + 7, "3"),
        event(0, "completed", 2 * DAY + 30, "4"),  # a run whose start was read before
        *life("6", 4 * DAY),
        *life("daily", 4 * DAY + 30),  # an id that is used again
        event(0, "progress", 10, "7"),  # of a day that was built
    ],
    [
        # Known from its events as of the day after: its beginning was on the day before.
        snapshot(0, "4", state="completed", created_at=at(DAY), started_at=at(2 * DAY), finished_at=at(2 * DAY + 30)),
        snapshot(0, "8", malformed="data is no JSON"),
        snapshot(0, "9", state="delayed", created_at=at(3 * DAY), run_at=at(9 * DAY)) | PGBOSS,
    ],
)


@pytest.fixture(scope="module")
def at_once(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake that got everything before its only build."""
    lake = Lake(str(tmp_path_factory.mktemp("at-once") / "lake"))
    ingest(spark, lake, *FIRST)
    ingest(spark, lake, *LATER)
    build(spark, lake)
    return lake


@pytest.fixture(scope="module")
def begun(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, BuildResult]:
    """A lake that was built when half of everything was there, and that has the other half since. Copied by tests."""
    lake = Lake(str(tmp_path_factory.mktemp("begun") / "lake"))
    ingest(spark, lake, *FIRST)
    first = build(spark, lake)
    ingest(spark, lake, *LATER)
    return lake, first


def checksums(lake: Lake) -> dict[str, int]:
    return {name: read_pointer(lake.root, name).checksum for name in (*BY_DAY, *SUMMARIES)}


def test_gold_and_silver_tell_what_happened(spark: Any, at_once: Lake) -> None:
    assert values(at_once.table(spark, "silver/jobs"), "id", "state", "day") == [
        ("1", "completed", NOON.date()),
        ("2", "failed", at(DAY).date()),
        ("3", "completed", at(DAY).date()),
        ("4", "completed", at(DAY).date()),
        ("6", "completed", at(4 * DAY).date()),
        ("9", "delayed", at(3 * DAY).date()),
        ("daily", "completed", at(4 * DAY).date()),
    ]
    assert values(at_once.table(spark, "silver/attempts"), "job_id", "outcome", "run_ms") == [
        ("1", "completed", 60_000),
        ("2", "failed", 60_000),
        ("3", "completed", 60_000),
        ("4", "completed", 30 * 60_000),
        ("6", "completed", 60_000),
        ("daily", "completed", 60_000),
        ("daily", "failed", 60_000),
    ]
    hours = read_table(at_once.root, "gold/throughput_hourly")
    assert {name: sum(hours[name].to_pylist()) for name in ("added", "completed", "failed")} == {
        "added": 8,
        "completed": 5,
        "failed": 2,
    }
    assert read_table(at_once.root, "gold/failures_daily")["error_class"].to_pylist() == ["SMTPError"] * 2
    assert read_table(at_once.root, "gold/gaps")["lost"].to_pylist() == [3]
    assert sorted(read_table(at_once.root, "quarantine")["id"].to_pylist())[-1] == "8"
    assert read_pointer(at_once.root, "quarantine").rows == 2


def test_builds_on_the_way_give_what_one_build_gives(
    spark: Any, lake: str, at_once: Lake, begun: tuple[Lake, BuildResult]
) -> None:
    shutil.copytree(begun[0].root, lake)
    stepwise, first = Lake(lake), begun[1]

    second = build(spark, stepwise)
    nothing_new = build(no_session, stepwise)

    assert first.days == ("2026-03-01", "2026-03-02", "2026-03-03")
    assert second.days == ("2026-03-01", "2026-03-02", "2026-03-03", "2026-03-05")
    assert checksums(stepwise) == checksums(at_once)
    assert (nothing_new.rows_in, nothing_new.days, nothing_new.checksums) == (0, (), second.checksums)
    assert [row["outcome"] for row in read_runs(lake)] == ["ok"] * 3


def test_days_that_are_built_again_are_the_same(spark: Any, lake: str, at_once: Lake) -> None:
    shutil.copytree(at_once.root, lake)
    copied = Lake(lake)

    again = build(spark, copied, since=at(DAY).date(), until=at(DAY).date() + timedelta(days=1))

    assert again.days == ("2026-03-02",)
    assert read_pointer(lake, "silver/events").generation == 2
    assert checksums(copied) == checksums(at_once)


def test_only_new_days_are_written_again(spark: Any, lake: str, at_once: Lake) -> None:
    shutil.copytree(at_once.root, lake)
    ingest(spark, Lake(lake), 6 * DAY, life("20", 5 * DAY), [])
    by_day = (*BY_DAY, *GOLD_BY_DAY)
    before = {name: read_pointer(lake, name).parts for name in by_day}

    result = build(spark, Lake(lake))

    after = {name: read_pointer(lake, name).parts for name in by_day}
    written = {name: {day for day in after[name] if after[name][day] != before[name].get(day)} for name in by_day}
    assert result.days == ("2026-03-06",)
    assert written == {name: set() if name in _WITHOUT_ROWS else {"2026-03-06"} for name in by_day}
    assert result.rows["silver/jobs"] == read_pointer(at_once.root, "silver/jobs").rows + 1


def test_gold_is_made_again_for_the_days_that_a_change_reaches(spark: Any, lake: str, at_once: Lake) -> None:
    shutil.copytree(at_once.root, lake)
    copied = Lake(lake)
    assert GoldChanges(copied).days == []
    runs = copied.table(spark, "silver/attempts", ["2026-03-01"])
    longer = runs.withColumn("ended_at", F.col("ended_at") + F.expr("INTERVAL 2 DAYS"))

    copied.publish(copied.stage("silver/attempts", longer, "longer"), ["2026-03-01"])
    reached = GoldChanges(copied)
    assert reached.days == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert reached.parts("silver/attempts") == ["2026-03-01", "2026-03-02", "2026-03-03"]
    reached.record()
    copied.publish(copied.stage("silver/attempts", runs, "again"), ["2026-03-01"])
    assert GoldChanges(copied).days == reached.days
    assert GoldChanges(copied).parts("silver/attempts") == reached.parts("silver/attempts")


def test_tables_with_the_columns_of_another_release_are_made_again(spark: Any, lake: str, at_once: Lake) -> None:
    shutil.copytree(at_once.root, lake)
    for table in ("silver/events", "gold/failures_daily"):
        pointer = Path(lake, table, "_current.json")
        pointer.write_text(pointer.read_text().replace("happened_at timestamp", "at timestamp").replace("sample_", ""))

    build(spark, Lake(lake))

    assert read_pointer(lake, "silver/events").columns == SILVER_EVENTS.ddl
    assert checksums(Lake(lake)) == checksums(at_once)
    build(no_session, Lake(lake))


def test_a_lake_without_rows_builds_empty_tables(spark: Any, lake: str) -> None:
    result = build(spark, Lake(lake))

    assert set(result.rows.values()) == {0}
    assert set(result.rows) == {*BY_DAY, *SUMMARIES}


def test_two_builds_at_once_are_refused(spark: Any, lake: str) -> None:
    tables = Lake(lake)

    with tables.files.locked("build"), pytest.raises(JobwireError, match="another build is under way"):
        build(spark, tables)


_CHILD = """
import sys
from jobwire.pipeline.history.build import BuildResult, build
from jobwire.pipeline.spark.session import SMALL, spark_session
from jobwire.pipeline.lake.lake import Lake
spark = spark_session("local[1]", {**SMALL, "spark.driver.memory": "700m", "spark.sql.shuffle.partitions": "1"})
build(spark, Lake(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_build_that_is_killed_leaves_whole_tables_and_the_next_one_finishes_its_work(
    spark: Any, lake: str, at_once: Lake, begun: tuple[Lake, BuildResult]
) -> None:
    shutil.copytree(begun[0].root, lake)
    tables = Lake(lake)
    old = checksums(tables)
    fatal = random.choice([*BY_DAY, *SUMMARIES])
    known = {path.name for path in (Path(lake) / fatal).iterdir()}

    child = subprocess.Popen([sys.executable, "-c", _CHILD, lake], start_new_session=True)
    deadline = time.monotonic() + 400
    while not any(path.name.startswith("v-") and path.name not in known for path in (Path(lake) / fatal).iterdir()):
        assert child.poll() is None, f"the build ended before it wrote {fatal}"
        assert time.monotonic() < deadline, f"the build never wrote {fatal}"
        time.sleep(0.01)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()

    at_the_kill = checksums(tables)
    assert at_the_kill[fatal] == old[fatal], f"killed while {fatal} was written"
    for name in (*BY_DAY, *SUMMARIES):
        assert read_table(lake, name).num_rows == read_pointer(lake, name).rows, name
    build(spark, tables)
    assert checksums(tables) == checksums(at_once), f"killed while {fatal} was written"
    assert [row["outcome"] for row in read_runs(lake)] == ["ok", "interrupted", "ok"]


def test_a_job_that_waited_for_long_is_made_again_from_its_own_days(spark: Any, tmp_path: Path) -> None:
    once, twice = Lake(str(tmp_path / "once")), Lake(str(tmp_path / "twice"))
    born = [event(0, "added", 0, "old", name="welcome"), event(1, "waiting", 0, "old")]
    others = [row for day in range(10) for row in life(f"of-day-{day}", day * DAY + 30)]
    ended = [event(0, "active", 11 * DAY, "old"), event(0, "completed", 11 * DAY + 1, "old")]
    waiting = snapshot(0, "old", state="waiting", created_at=NOON)
    for lake in (once, twice):
        ingest(spark, lake, 10 * DAY, [*born, *others], [waiting])
    build(spark, twice)
    for lake in (once, twice):
        ingest(spark, lake, 12 * DAY, ended, [waiting | {"state": "completed", "finished_at": at(11 * DAY + 1)}])

    build(spark, twice)
    build(spark, once)

    assert values(twice.table(spark, "silver/jobs").where("id = 'old'"), "state", "day") == [("completed", NOON.date())]
    assert checksums(twice) == checksums(once)


def test_of_a_source_only_parts_of_later_generations_are_read(spark: Any, lake: str) -> None:
    tables = Lake(lake)
    ingest(spark, tables, 0, life("1", 0), [])
    before = tables.bronze_state()["events"]
    assert tables.bronze_events(spark, before).count() == 0
    ingest(spark, tables, 1, life("2", 60), [])

    assert {row["job_id"] for row in tables.bronze_events(spark, before).collect()} == {"2"}
    assert tables.bronze_events(spark).count() == 8


def test_what_was_ingested_after_the_clock_was_set_back_is_new(spark: Any, lake: str) -> None:
    tables = Lake(lake)
    ingest(spark, tables, 60, life("1", 0), [])
    first = BronzeInput(spark, tables)
    tables.files.write(MARKS, first.marks)
    tables.files.write(BUILT, tables.bronze_state())
    ingest(spark, tables, 10, life("2", 0), [])

    second = BronzeInput(spark, tables)
    ingest(spark, tables, 5, life("3", 0), [])

    assert values(second.new_events.select("job_id").distinct(), "job_id") == [("2",)]
    assert values(second.events(second.new_days).select("job_id").distinct(), "job_id") == [("1",), ("2",)]
    assert second.marks["events"] == first.marks["events"]


def test_bronze_that_nothing_new_concerns_is_not_read(spark: Any, lake: str, at_once: Lake) -> None:
    shutil.copytree(at_once.root, lake)
    for old in Path(lake, "bronze").glob("*/*/v-*"):
        shutil.rmtree(old)
    new = snapshot(0, "20", state="completed", created_at=at(5 * DAY), finished_at=at(5 * DAY + 2), attempts_made=1)
    ingest(spark, Lake(lake), 6 * DAY, life("20", 5 * DAY), [new])

    result = build(spark, Lake(lake))

    assert result.rows["silver/jobs"] == read_pointer(at_once.root, "silver/jobs").rows + 1


def test_a_job_is_made_again_from_the_snapshot_in_which_it_was_last_seen(spark: Any, tmp_path: Path) -> None:
    once, stepwise = Lake(str(tmp_path / "once")), Lake(str(tmp_path / "stepwise"))
    waiting = snapshot(0, "old", state="waiting", created_at=NOON, payload="{}")
    undated = snapshot(0, "undated", state="waiting", payload="{}")
    for day in (1, 3):
        for lake in (once, stepwise):
            ingest(spark, lake, day * DAY, life(f"of-day-{day}", day * DAY - 30), [waiting, undated])
        build(spark, stepwise)
    first = _snapshot_parts(stepwise)[f"r{DAY}"]
    ended = [event(0, "active", 5 * DAY + 5, "old"), event(0, "completed", 5 * DAY + 6, "old")]
    of_undated = [event(0, "active", 5 * DAY + 5, "undated")]
    for lake in (once, stepwise):
        ingest(spark, lake, 5 * DAY, life("of-day-5", 5 * DAY - 30), [])
        ingest(spark, lake, 6 * DAY, [*ended, *of_undated], [])
    build(spark, stepwise)
    of_job = "id = 'undated'"
    assert values(stepwise.table(spark, "silver/jobs").where(of_job), "state", "day") == [("active", at(DAY).date())]

    shutil.rmtree(Path(stepwise.root, "bronze/job_snapshots", folder_of("a"), first.folder))
    for lake in (once, stepwise):
        ingest(spark, lake, 7 * DAY, [event(0, "removed", 6 * DAY + 1, "old")], [])
    build(spark, stepwise)
    build(spark, once)
    assert checksums(stepwise) == checksums(once)


def _snapshot_parts(lake: Lake) -> Mapping[str, Part]:
    pointer = lake.pointer(f"bronze/job_snapshots/{folder_of('a')}")
    assert pointer is not None
    return pointer.parts
