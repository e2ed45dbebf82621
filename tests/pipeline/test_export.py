"""Exports: what other programs read in Delta and Iceberg is what the lake has published."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, get_args

import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from jobwire.cli import main
from jobwire.errors import InvalidOption, JobwireError
from jobwire.pipeline.export import export_tables
from jobwire.pipeline.export.changes import PART, Changes, changes_since
from jobwire.pipeline.export.export import Format, _target
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.pointers import read_pointer, read_table
from jobwire.pipeline.lake.run_log import read_runs
from jobwire.pipeline.lake.tables import columns_of, has_days
from jobwire.pipeline.sql.names import TABLES, sql_name
from pipeline.literal_rows import at, attempt, attempts, job, jobs
from pipeline.written_lake import fill, publish, run_of
from pipeline.written_lake import job as written_job

FORMATS: tuple[Format, ...] = get_args(Format)
CHILD = Path(__file__).with_name("export_child.py")


class Export:
    """A folder of exported tables, as readers of its format have them."""

    def __init__(self, folder: Path, table_format: Format) -> None:
        self.folder, self.format = folder, table_format

    def run(self, lake: str) -> dict[str, int]:
        """Exports, and returns the rows that were written of each table that has changed."""
        result = export_tables(lake, str(self.folder), self.format)
        return {one.name: one.rows for one in result.tables if one.changed}

    def handle(self, table: str) -> Any:
        if self.format == "delta":
            return DeltaTable(self.folder / sql_name(table))
        catalog = SqlCatalog("jobwire", uri=f"sqlite:///{self.folder}/catalog.db", warehouse=f"file://{self.folder}")
        return catalog.load_table(("jobwire", sql_name(table)))

    def arrow(self, table: str) -> pa.Table:
        handle = self.handle(table)
        return handle.to_pyarrow_table() if self.format == "delta" else handle.scan().to_arrow()

    def polars(self, table: str) -> pa.Table:
        handle = self.handle(table)
        if self.format == "delta":
            return polars.read_delta(handle).to_arrow()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a faster planner is not installed
            return polars.scan_iceberg(handle).collect().to_arrow()

    def duckdb(self, table: str) -> pa.Table:
        rows = self.handle(table).to_pyarrow_dataset() if self.format == "delta" else self.arrow(table)
        with duckdb.connect() as database:
            database.execute("set timezone = 'UTC'")
            database.register("exported", rows)
            return database.sql("from exported").to_arrow_table()

    def files(self, table: str) -> set[str]:
        handle = self.handle(table)
        if self.format == "delta":
            return {*handle.file_uris()}
        return {task.file.file_path for task in handle.scan().plan_files()}

    def versions(self, table: str) -> int:
        handle = self.handle(table)
        return handle.version() if self.format == "delta" else len(handle.metadata.metadata_log)


def plain(table: str, rows: pa.Table) -> list[dict[str, Any]]:
    """Rows with the types of the lake, in one order."""
    names = [*columns_of(table).names]
    found = rows.select(names).cast(columns_of(table).arrow).to_pylist()
    return sorted(found, key=lambda row: json.dumps(row, default=str))


def assert_equal(export: Export, lake: str) -> None:
    for table in (table for table in TABLES if (Path(lake) / table / "_current.json").exists()):
        assert plain(table, export.arrow(table)) == plain(table, read_table(lake, table)), table
        assert (PART in export.arrow(table).schema.names) == has_days(table)


@pytest.fixture(params=FORMATS)
def export(request: pytest.FixtureRequest, tmp_path: Path) -> Export:
    return Export(tmp_path / "exported", request.param)


def test_other_programs_read_what_was_published(lake: str, export: Export) -> None:
    fill(lake)
    written = export.run(lake)

    assert (written["silver_jobs"], written["gold_gaps"]) == (60, 0)
    assert_equal(export, lake)
    for table in ("silver/jobs", "gold/latency_hourly", "gold/quality"):
        published = plain(table, read_table(lake, table))
        assert plain(table, export.polars(table)) == published
        assert plain(table, export.duckdb(table)) == published
    assert {*export.arrow("silver/jobs")[PART].to_pylist()} == {*read_pointer(lake, "silver/jobs").parts}
    assert [row["command"] for row in read_runs(lake)] == ["export"]


def test_only_what_has_changed_is_written_again(lake: str, export: Export) -> None:
    made = fill(lake)
    export.run(lake)
    versions = {table: export.versions(table) for table in ("silver/jobs", "silver/attempts", "gold/quality")}
    files = export.files("silver/jobs")
    assert export.run(lake) == {}
    assert {table: export.versions(table) for table in versions} == versions

    days = sorted({one["day"].isoformat() for one in made})
    publish(lake, "silver/jobs", [written_job(900, 1), written_job(901, 9)], days[1:])
    publish(lake, "gold/quality", [])

    assert export.run(lake) == {"silver_jobs": 2, "gold_quality": 0}
    assert_equal(export, lake)
    assert len(export.files("silver/jobs") & files) == 1  # that of the day which has not changed
    assert export.versions("silver/attempts") == versions["silver/attempts"]
    publish(lake, "silver/jobs", [])
    assert export.run(lake) == {"silver_jobs": 0}
    assert_equal(export, lake)


def test_an_export_with_the_columns_of_another_release_is_written_again(
    lake: str, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake)
    pointer = read_pointer(lake, "silver/jobs")
    older = Changes(pointer, tuple(pointer.parts), (), whole=True)
    with monkeypatch.context() as patch:
        names = older.schema.names
        old = pa.schema([field.with_name("former") if field.name == "worker" else field for field in older.schema])
        rows = read_table(lake, "silver/jobs").append_column(PART, pa.array(["x"] * 60)).rename_columns(old.names)
        patch.setattr(Changes, "schema", old)
        patch.setattr(Changes, "_batches", lambda _: iter(rows.to_batches()))
        export.folder.mkdir()
        _target(export.format, str(export.folder)).replace("silver_jobs", older)
    assert export.arrow("silver/jobs").schema.names != names

    assert export.run(lake)["silver_jobs"] == 60
    assert export.arrow("silver/jobs").schema.names == names
    assert_equal(export, lake)
    assert export.run(lake) == {}


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["in the middle of the rows", "before the commit"])
def test_an_export_that_is_killed_leaves_whole_tables_and_the_next_one_finishes_its_work(
    lake: str, export: Export, moment: str
) -> None:
    fill(lake)
    export.run(lake)
    before = plain("silver/jobs", export.arrow("silver/jobs"))
    changed = [written_job(number, 1) for number in range(500, 530)]
    publish(lake, "silver/jobs", [*changed, written_job(1, 7)], ["2026-05-12"])
    publish(lake, "silver/attempts", map(run_of, changed), ["2026-05-12"])

    command = [sys.executable, str(CHILD), lake, str(export.folder), export.format, moment, "silver/jobs"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.returncode == -signal.SIGKILL, done.stderr
    assert plain("silver/jobs", export.arrow("silver/jobs")) == before
    assert [row["outcome"] for row in read_runs(lake)] == ["ok", "interrupted"]
    assert export.run(lake) == {"silver_jobs": 31, "silver_attempts": 30}
    assert_equal(export, lake)


def test_two_exports_at_once_are_refused(lake: str, export: Export) -> None:
    fill(lake)
    export.folder.mkdir()
    with (
        LakeFiles(str(export.folder)).locked("export"),
        pytest.raises(JobwireError, match="another export is under way"),
    ):
        export.run(lake)
    assert not (export.folder / "silver_jobs").exists()


def test_an_export_that_does_not_know_of_another_one_doubles_nothing(lake: str, export: Export) -> None:
    """Where there is no lock: on two machines."""
    fill(lake)
    export.run(lake)
    publish(lake, "silver/jobs", [written_job(900, 1)], ["2026-05-12"])
    pointer = read_pointer(lake, "silver/jobs")
    both = changes_since(pointer, {"2026-05-11": pointer.parts["2026-05-11"].folder})
    for _ in range(2):
        _target(export.format, str(export.folder)).replace("silver_jobs", both)

    assert_equal(export, lake)
    assert export.run(lake) == {}


def test_a_lake_that_is_published_twice_during_an_export_is_a_sentence(lake: str, export: Export) -> None:
    fill(lake)
    pointer = read_pointer(lake, "silver/jobs")
    export.run(lake)
    files = LakeFiles(lake)
    files.remove(f"silver/jobs/{pointer.folders[0]}")
    with pytest.raises(JobwireError, match="was published twice during the export"):
        Changes(pointer, tuple(pointer.parts), (), whole=True).reader().read_all()


def test_what_can_not_be_exported_is_refused_before_anything_is_written(lake: str, tmp_path: Path) -> None:
    with pytest.raises(JobwireError, match="has no tables yet"):
        export_tables(lake, str(tmp_path / "to"))
    fill(lake)
    refused: dict[str, dict[str, Any]] = {
        "format: must be one of delta, iceberg": {"format": "hudi"},
        "tables: must be among silver_events": {"tables": ["silver/jobs"]},
    }
    for words, options in refused.items():
        with pytest.raises(InvalidOption, match=words):
            export_tables(lake, str(tmp_path / "to"), **options)
    with pytest.raises(JobwireError, match="is in the lake at"):
        export_tables(lake, f"{lake}/delta")
    with pytest.raises(JobwireError, match="exports are written to a folder"):
        export_tables(lake, "mock:///delta")
    assert not (tmp_path / "to").exists()
    assert not (tmp_path / "lake/delta").exists()


def test_the_command_prints_what_has_changed(lake: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fill(lake)
    arguments = ["pipeline", "export", "--lake", lake, "--to", str(tmp_path / "it's to"), "--table", "silver_jobs"]

    assert main(arguments) == 0
    assert "1 of 1 tables have changed" in capfd.readouterr().out
    assert main(arguments) == 0
    assert "nothing new since the last export" in capfd.readouterr().out
    assert main([*arguments, "--json"]) == 0
    [table] = json.loads(capfd.readouterr().out)["tables"]
    assert table == {"name": "silver_jobs", "changed": False, "rows": 0, "rows_in_all": 60}
    assert main([*arguments, "--format", "hudi"]) == 1
    assert "format: must be one of delta, iceberg (got 'hudi')" in capfd.readouterr().err


@pytest.mark.xdist_group("spark")
def test_spark_reads_the_files_of_an_export_of_what_it_has_published(spark: Any, lake: str, export: Export) -> None:
    """Without a jar, Spark does not know the formats. It reads the Parquet files of the newest version."""
    tables, moment = Lake(lake), at(0).replace(microsecond=123_457)
    rows = {
        "silver/jobs": jobs(spark, job("a", finished_at=moment), job("b")),
        "silver/attempts": attempts(spark, attempt(0, 1, job_id="a"), attempt(60 * 24, None)),
    }
    for table, frame in rows.items():
        tables.publish(tables.stage(table, frame, "r1"))
    export.run(lake)
    tables.publish(tables.stage("silver/attempts", attempts(spark, attempt(1, 2)), "r2"), ["2026-03-01"])
    export.run(lake)

    assert_equal(export, lake)
    for table in rows:
        found = spark.read.parquet(*export.files(table)).select(*columns_of(table).names).toArrow()
        assert plain(table, found) == plain(table, read_table(lake, table))
