"""Keeping a lake small: parts are merged, and old ones expire, without a row that silver or a build would miss."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from jobwire.errors import InvalidOption, JobwireError
from jobwire.pipeline.history.build import build
from jobwire.pipeline.history.marks import BUILT
from jobwire.pipeline.history.tidy import tidy
from jobwire.pipeline.lake.lake import Lake, folder_of
from jobwire.pipeline.lake.pointers import read_pointer, read_table
from jobwire.pipeline.lake.publication import Staged
from jobwire.pipeline.lake.run_log import read_runs
from jobwire.pipeline.lake.schemas import SNAPSHOTS
from jobwire.pipeline.lake.tables import columns_of
from jobwire.pipeline.lake.versions import folder_of_run
from pipeline.literal_rows import NOON, at, bronze_events, event, frame, snapshot, values

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
DAY = 60 * 24
EVENTS, JOBS = f"bronze/events/{folder_of('a')}", f"bronze/job_snapshots/{folder_of('a')}"


def no_session() -> NoReturn:
    raise AssertionError("there is nothing to do for Spark")


def ingest(spark: Any, lake: Lake, minute: float, *jobs: str, of: float | None = None) -> None:
    """Bronze of a run at that minute: an event and a snapshot of each job, which was added then, or at `of`."""
    added = minute if of is None else of
    events = [
        event(number, "added", added, job, name="welcome") | {"ingested_at": at(minute)}
        for number, job in enumerate(jobs)
    ]
    lake.add_events(folder_of("a"), bronze_events(spark, *events), None, f"{minute}")
    seen = [
        snapshot(minute, job, created_at=at(added), payload=f'{{"job":"{job}"}}') | {"seen_at": at(minute)}
        for job in jobs
    ]
    lake.add_snapshot("a", frame(spark, SNAPSHOTS, seen), f"{at(minute):%Y%m%dT%H%M%S}-00000000", at=at(minute))


def used(lake: Lake) -> None:
    """Records, as a build does at its end, that it has used bronze as it is."""
    lake.files.write(BUILT, lake.bronze_state())


def keys(lake: Lake, table: str) -> list[str]:
    pointer = lake.pointer(table)
    assert pointer is not None
    return list(pointer.parts)


def test_parts_of_a_day_are_merged_without_a_change_for_readers_and_builds(spark: Any, lake: str) -> None:
    tables = Lake(lake)
    ingest(spark, tables, -100 * DAY, "old")
    for minute in range(6):
        ingest(spark, tables, minute, f"{minute}", f"{minute}-")
    used(tables)
    known = tables.snapshot_generations()
    under_way = tables.bronze_events(spark).where("job_id != 'old'")
    before = values(under_way, "id", "job_id")

    result = tidy(spark, tables, timedelta(days=90), now=NOON)

    assert (result.merged, result.into, result.expired) == (5 + 6, 2, 2)
    assert [key for key in keys(tables, EVENTS) if key.endswith("@5")] != []  # Spark may repeat the newest batch
    assert [len(keys(tables, EVENTS)), len(keys(tables, JOBS))] == [2, 1]
    merged = tables.pointer(JOBS)
    assert merged is not None
    assert [part.reaches for part in merged.parts.values()] == [["2026-03-01"]]
    assert values(tables.bronze_events(spark), "id", "job_id") == before == values(under_way, "id", "job_id")
    assert tables.snapshots(spark).count() == 12
    assert build(no_session, tables).rows_in == 0
    again = tidy(no_session, tables)
    assert (again.merged, again.expired, read_runs(lake)[-1]["outcome"]) == (0, 0, "ok")
    assert len([*(Path(lake) / EVENTS).glob("v-*")]) == 8  # the others go with the next publication
    ingest(spark, tables, 7, "7")
    assert len([*(Path(lake) / EVENTS).glob("v-*")]) == 3
    assert values(tables.snapshots(spark, after=known), "id") == [("7",)]


def test_what_is_ingested_while_parts_are_merged_is_kept_and_is_new_for_the_next_build(spark: Any, lake: str) -> None:
    class Meanwhile(Lake):
        def stage(self, name: str, rows: Any, run: str) -> Staged:
            staged = super().stage(name, rows, run)
            if name == EVENTS:
                ingest(spark, Lake(lake), 9, "late")
            return staged

    for minute in range(5):
        ingest(spark, Lake(lake), minute, f"{minute}")
    used(Lake(lake))
    known = Lake(lake).snapshot_generations()

    assert tidy(spark, Meanwhile(lake)).merged == 4 + 5

    assert Lake(lake).bronze_events(spark).count() == Lake(lake).snapshots(spark).count() == 6
    assert values(Lake(lake).snapshots(spark, after=known), "id") == [("late",)]
    assert Lake(lake).files.read(BUILT) != Lake(lake).bronze_state()


def test_a_merge_that_dies_before_it_is_published_leaves_bronze_as_it_was(spark: Any, lake: str) -> None:
    class Dying(Lake):
        def publish(self, staged: Staged, replacing: Any = None) -> NoReturn:
            raise KeyboardInterrupt

    for minute in range(5):
        ingest(spark, Lake(lake), minute, f"{minute}")
    before = keys(Lake(lake), EVENTS)

    with pytest.raises(KeyboardInterrupt):
        tidy(spark, Dying(lake))

    left = Path(lake) / EVENTS / folder_of_run(read_runs(lake)[-1]["run"])
    assert left.exists()
    assert keys(Lake(lake), EVENTS) == before
    assert tidy(spark, Lake(lake)).merged == 4
    assert not left.exists()


def test_old_rows_expire_once_a_build_has_used_them_and_silver_keeps_them(spark: Any, lake: str) -> None:
    tables = Lake(lake)
    ingest(spark, tables, 0, "1", "2")
    ingest(spark, tables, 100 * DAY, "3")
    build(spark, tables)
    ingest(spark, tables, 100 * DAY + 5, "4", of=2 * DAY)  # comes late: no build has used it

    result = tidy(no_session, tables, timedelta(days=90), now=NOON + timedelta(days=100))

    assert (result.expired, result.expired_rows) == (2, 4)
    assert [key.partition("@")[0] for key in keys(tables, EVENTS)] == ["2026-03-03", "2026-06-09"]
    assert len(keys(tables, JOBS)) == 2
    # Bronze reports an event of a day that has expired, and one of a job whose snapshots have.
    ingest(spark, tables, 101 * DAY, "5", of=1)
    repeated = event(0, "added", 0, "1", name="welcome") | {"ingested_at": at(101 * DAY)}
    tables.add_events(folder_of("a"), bronze_events(spark, repeated), None, "again")
    build(spark, tables)

    assert_whole(lake)
    for name in ("build", "built", "gold"):  # what was built up to is lost
        (Path(lake) / "checkpoints" / f"{name}.json").unlink()
    gone = {
        "silver/jobs": "run_errors string, ",
        "silver/attempts": "gave_up boolean, ",
        "gold/retries": "jobs bigint, ",
    }
    for table, column in gone.items():  # another release made them without these
        rewrite(lake, table, column, "")
    build(spark, tables)
    assert_whole(lake)
    assert {table: read_pointer(lake, table).columns for table in gone} == {name: columns_of(name).ddl for name in gone}
    rewrite(lake, "silver/events", "happened_at timestamp", "at timestamp")
    with pytest.raises(JobwireError, match="'at timestamp', and can't be made again: rows before 2026-03-11 have"):
        build(spark, tables)


def rewrite(lake: str, table: str, old: str, new: str) -> None:
    pointer = Path(lake, table, "_current.json")
    assert old in pointer.read_text()
    pointer.write_text(pointer.read_text().replace(old, new))


def assert_whole(lake: str) -> None:
    assert sorted(read_table(lake, "silver/events")["job_id"].to_pylist()) == ["1", "2", "3", "4", "5"]
    jobs = {row["id"]: row for row in read_table(lake, "silver/jobs").to_pylist()}
    assert {key: row["created_at"] for key, row in jobs.items()} == {
        "1": at(0),
        "2": at(0),
        "3": at(100 * DAY),
        "4": at(2 * DAY),
        "5": at(1),
    }
    assert all(row["payload_hash"] for row in jobs.values()), jobs
    checks = {row["check_name"]: row["value"] for row in read_table(lake, "gold/quality").to_pylist()}
    assert (checks["events"], checks["jobs"], checks["duplicate events"]) == (5, 5, 0)


def test_nothing_is_tidied_while_a_build_is_under_way_or_of_a_wrong_age(lake: str) -> None:
    tables = Lake(lake)
    with tables.files.locked("build"), pytest.raises(JobwireError, match="another build is under way"):
        tidy(no_session, tables)
    with pytest.raises(InvalidOption, match="keep: must be two days or more"):
        tidy(no_session, tables, timedelta(hours=36))
    assert tidy(no_session, tables, timedelta(days=2), now=datetime.now(UTC)).expired == 0


def test_a_snapshot_expires_by_its_own_day_and_not_by_that_on_which_its_ingest_began(spark: Any, lake: str) -> None:
    tables = Lake(lake)
    run = f"{at(-100 * DAY):%Y%m%dT%H%M%S}-00000000"  # an ingest that has followed the store since then
    for number, minute in enumerate((-100 * DAY, 0)):
        rows = frame(spark, SNAPSHOTS, [snapshot(minute, "1") | {"seen_at": at(minute)}])
        tables.add_snapshot("a", rows, f"{run}-{number}", at=at(minute))
    used(tables)

    result = tidy(spark, tables, timedelta(days=90), now=NOON)

    assert (result.expired, keys(tables, JOBS)) == (1, [f"{run}-1"])
