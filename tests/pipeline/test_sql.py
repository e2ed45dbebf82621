"""SQL over a lake: what is published is what is asked, and a query reaches nothing else."""

from __future__ import annotations

import contextlib
import csv
import doctest
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest

from jobwire.cli import main
from jobwire.errors import JobwireError
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.pointers import read_table
from jobwire.pipeline.lake.tables import columns_of
from jobwire.pipeline.sql import QueryError, cells, names, query, register_tables, write_views
from jobwire.pipeline.sql.names import TABLES, sql_name
from pipeline.literal_rows import at, attempt, attempts, job, jobs, values
from pipeline.written_lake import STORE, fill, publish
from pipeline.written_lake import job as written_job

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake of three days, which tests only read."""
    root = str(tmp_path_factory.mktemp("sql") / "lake")
    fill(root)
    return root


@pytest.fixture
def ask(filled: str, capfd: pytest.CaptureFixture[str]) -> Ask:
    """Runs `jobwire pipeline sql` on that lake, and returns its exit code, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(["pipeline", "sql", "--lake", filled, *map(str, arguments)])
        return code, *capfd.readouterr()

    return run


@pytest.mark.parametrize("module", [cells, names])
def test_the_examples_in_the_docstrings_hold(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert (results.failed, results.attempted > 0) == (0, True), results


def test_a_query_sees_the_rows_that_are_published(filled: str) -> None:
    found = query(filled, "select state, count(*) as jobs from silver_jobs group by all order by state")

    assert found.to_pylist() == [{"state": "completed", "jobs": 48}, {"state": "failed", "jobs": 12}]
    assert query(filled, "from silver_jobs order by id").equals(read_table(filled, "silver/jobs").sort_by("id"))
    assert query(filled, "select count(*) as n from gold_workers_hourly").to_pylist() == [{"n": 0}]


def test_times_are_in_utc_whatever_the_machine_has(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    [row] = query(filled, "select min(created_at) as t, min(created_at)::date as d from silver_jobs").to_pylist()

    assert row == {"t": datetime(2026, 5, 11, tzinfo=UTC), "d": date(2026, 5, 11)}


def test_pivots_and_plans_and_lists_are_queries(filled: str) -> None:
    assert query(filled, "pivot silver_jobs on state using count(*) group by queue").num_rows == 1
    assert query(filled, "explain from silver_jobs").num_rows > 0
    assert query(filled, "describe silver_jobs")["column_name"].to_pylist() == [*columns_of("silver/jobs").names]
    assert "gold_latency_hourly" in query(filled, "show tables")["name"].to_pylist()


def test_the_run_log_is_a_table(lake: str) -> None:
    fill(lake)
    with Lake(lake).run("build") as run:
        run.rows_in = 7

    assert query(lake, "select command, outcome, rows_in from runs").to_pylist() == [
        {"command": "build", "outcome": "ok", "rows_in": 7}
    ]


REFUSED = [
    ("selct 1", "line 1, column 1"),
    ("select\n  größe, 1 from silver_jobs", "line 2, column 3"),
    ("select 'größe', nosuch from silver_jobs", "line 1, column 17"),
    ("select * from silver_job", "there is no table silver_job among silver_events, silver_jobs"),
    ("select nosuch(1)", "line 1, column 8"),
    ("", "the query is empty"),
    ("select 1; select 2", "write one query, not 2 statements"),
    ("select $a", "parameters without values: $a"),
    ("select '\udcff'", "not text in UTF-8"),
    ("create table a as select 1", "only queries are run here"),
    ("copy silver_jobs to 'here.csv'", "only queries are run here"),
    ("install httpfs", "only queries are run here"),
    ("attach 'here.db'", "only queries are run here"),
    ("set enable_external_access = true", "only queries are run here"),
    ("pragma enable_profiling", "only queries are run here"),
]
FAILED = [
    ("select cast(name as int) from silver_jobs", "the query failed at line 1, column 8: Could not convert"),
    ("select * from read_text('/etc/passwd')", "reads the tables of the lake and nothing else at line 1, column 15"),
    ("select * from 'here.parquet'", "reads the tables of the lake and nothing else"),
    ("select * from glob('/etc/*')", "reads the tables of the lake and nothing else"),
    ("select * from read_csv('http://127.0.0.1:1/x')", "reads the tables of the lake and nothing else"),
    ("explain analyze copy (select 1) to 'here.csv'", "reads the tables of the lake and nothing else"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_a_query_that_is_not_understood_is_one_sentence_with_its_position(ask: Ask, text: str, words: str) -> None:
    code, out, err = ask(text)

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("jobwire: ")
    assert words in err


@pytest.mark.parametrize(("text", "words"), FAILED)
def test_a_query_that_fails_or_reads_elsewhere_is_refused(ask: Ask, text: str, words: str) -> None:
    code, out, err = ask(text)

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert words in err


def test_no_query_leaves_a_file_behind(filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    before = sorted(Path(filled).rglob("*"))
    for text, _ in [*REFUSED, *FAILED, ("select * from silver_jobs order by payload", "")]:
        with contextlib.suppress(JobwireError):
            query(filled, text)

    assert [*tmp_path.iterdir()] == []
    assert sorted(Path(filled).rglob("*")) == before


def test_names_of_this_program_are_not_tables(filled: str) -> None:
    secret = read_table(filled, "silver/jobs")

    with pytest.raises(QueryError, match="there is no table secret"):
        query(filled, "select * from secret")
    assert secret.num_rows == 60


def test_an_error_in_the_middle_of_the_answer_is_a_sentence_too(ask: Ask) -> None:
    late = "select cast(case when i = 300000 then 'x' else '1' end as int) as n from range(300001) t(i)"
    code, _, err = ask("--csv", late)

    assert (code, err.count("\n")) == (1, 1)
    assert "Could not convert string 'x'" in err


def test_json_has_a_line_for_each_row_with_values_that_json_has(ask: Ask) -> None:
    text = """select count(*) as n, sum(attempts_made) as total, 1.5 as share, 0.1::double / 3 as third,
        max(finished_at) as last, max(day) as day,
        [1, null] as list, {'a': 'ö'} as pair, null as none, 'nan'::double as nan, 1 as n"""
    code, out, _ = ask("--json", f"{text} from silver_jobs")

    assert code == 0
    assert json.loads(out) == {
        "n": 60, "total": 60, "share": 1.5, "third": 0.1 / 3, "last": "2026-05-13T00:59:05.123457Z",
        "day": "2026-05-13", "list": [1, None], "pair": {"a": "ö"}, "none": None, "nan": None, "n_2": 1,
    }  # fmt: skip
    assert len(ask("--json", "select id from silver_jobs")[1].splitlines()) == 60


def test_csv_is_read_back_as_it_was(ask: Ask) -> None:
    text = """select 'a "b", c' as "x, y", e'two\\nlines' as lines, null as none, true as yes, id"""
    _, out, _ = ask("--csv", f"{text} from silver_jobs limit 2")

    assert [*csv.reader(io.StringIO(out))] == [
        ["x, y", "lines", "none", "yes", "id"],
        ['a "b", c', "two\nlines", "", "true", "0"],
        ['a "b", c', "two\nlines", "", "true", "1"],
    ]


def test_a_table_can_not_control_the_terminal(ask: Ask) -> None:
    code, out, _ = ask("select chr(27) || '[2J' as a, '[red]b' as b")

    assert code == 0
    assert "\x1b" not in out
    assert "[red]b" in out


def test_a_long_table_ends_with_the_number_of_rows_that_are_shown(ask: Ask) -> None:
    _, out, err = ask("select i from range(1001) t(i)")
    assert (len(out.splitlines()), "first 1,000 rows" in err) == (1001, True)
    _, out, err = ask("select i from range(1000) t(i)")
    assert (len(out.splitlines()), err) == (1001, "")


def test_without_a_query_the_tables_are_listed(ask: Ask) -> None:
    found = {one["name"]: one["rows"] for one in map(json.loads, ask("--json")[1].splitlines())}

    assert (found["silver_jobs"], found["gold_gaps"]) == (60, 0)
    assert "silver_jobs" in ask()[1]


def test_a_query_can_come_from_stdin(filled: str) -> None:
    command = [sys.executable, "-m", "jobwire", "pipeline", "sql", "-", "--csv", "--lake", filled]
    done = subprocess.run(command, input="select 1 as one", capture_output=True, text=True, check=True)
    assert done.stdout == "one\n1\n"


@pytest.mark.parametrize("arguments", [("--json", "--csv", "select 1"), ("--views", "x.duckdb", "select 1")])
def test_options_that_exclude_each_other_are_a_usage_error(ask: Ask, arguments: tuple[str, ...]) -> None:
    assert ask(*arguments)[0] == 2


def test_a_lake_without_tables_says_what_to_do(lake: str) -> None:
    with pytest.raises(JobwireError, match="has no tables yet: run `jobwire pipeline run` first"):
        query(lake, "select 1")


def test_views_show_what_is_published_when_they_are_asked(lake: str, tmp_path: Path) -> None:
    made = fill(lake)
    assert write_views(lake, tmp_path / "it's.duckdb")[:2] == ["silver_events", "silver_jobs"]

    with duckdb.connect(tmp_path / "it's.duckdb", read_only=True) as views:
        count = "select count(*), count(distinct id) from silver_jobs"
        assert views.execute(count).fetchall() == [(60, 60)]
        assert views.execute("from gold_workers_hourly").fetchall() == []
        publish(lake, "silver/jobs", [written_job(7, 1), written_job(8, 9)], [made[20]["day"].isoformat()])
        publish(lake, "gold/workers_hourly", [{"store": STORE, "worker": "a", "hour": made[0]["created_at"]}])
        Path(lake, "silver/jobs/v-crashed/part=2026-05-11").mkdir(parents=True)
        staged = next(Path(lake, "silver/jobs").glob("v-*/*/*.parquet"))
        shutil.copy(staged, Path(lake, "silver/jobs/v-crashed/part=2026-05-11/half.parquet"))
        assert views.execute(count).fetchall() == [(42, 40)]
        assert views.execute("select worker from gold_workers_hourly").fetchall() == [("a",)]


def test_a_view_has_the_rows_and_types_of_its_table(filled: str, tmp_path: Path) -> None:
    copy = shutil.copytree(filled, tmp_path / "lake")
    names = write_views(str(copy), tmp_path / "lake.duckdb")

    with duckdb.connect(tmp_path / "lake.duckdb", read_only=True) as views:
        views.execute("set timezone = 'UTC'")
        for table in (table for table in TABLES if sql_name(table) in names):
            found = views.sql(f"from {sql_name(table)} order by all").to_arrow_table()
            assert found.cast(columns_of(table).arrow).equals(query(filled, f"from {sql_name(table)} order by all"))


def test_views_replace_only_files_of_duckdb(filled: str, tmp_path: Path) -> None:
    copy = str(shutil.copytree(filled, tmp_path / "lake"))
    mine = tmp_path / "mine.txt"
    mine.write_text("not a database")
    write_views(copy, tmp_path / "views.duckdb")
    write_views(copy, tmp_path / "views.duckdb")

    for wrong, words in (
        (mine, "is not a file of DuckDB"),
        (tmp_path, "is a folder"),
        (tmp_path / "no/x", "no folder"),
    ):
        with pytest.raises(JobwireError, match=words):
            write_views(copy, wrong)
    assert mine.read_text() == "not a database"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".new")] == []
    assert os.listdir(f"{copy}/silver/jobs/columns/columns") == ["none.parquet"]


def publish_by_spark(lake: Lake, name: str, rows: Any, run: str, replacing: Any = None) -> None:
    lake.publish(lake.stage(name, rows, run), replacing)


@pytest.mark.xdist_group("spark")
def test_what_spark_has_published_is_the_same_in_queries_views_and_its_catalog(
    spark: Any, lake: str, tmp_path: Path
) -> None:
    tables, day = Lake(lake), 60 * 24
    moment = at(0).replace(microsecond=123_457)
    publish_by_spark(tables, "silver/jobs", jobs(spark, job("a", finished_at=moment), job("b")), "r1")
    runs = attempts(spark, attempt(0, 1, job_id="a"), attempt(day, None, job_id="b"))
    publish_by_spark(tables, "silver/attempts", runs, "r1")
    expected = [("a", moment), ("b", None)]

    asked = "select id, finished_at from {} order by id"
    assert [(*row.values(),) for row in query(lake, asked.format("silver_jobs")).to_pylist()] == expected
    write_views(lake, tmp_path / "lake.duckdb")
    with duckdb.connect(tmp_path / "lake.duckdb", read_only=True) as views:
        views.execute("set timezone = 'America/New_York'")
        assert [
            (id_, time and time.astimezone(UTC)) for id_, time in views.execute(asked.format("silver_jobs")).fetchall()
        ] == expected
    try:
        assert register_tables(spark, lake) == ["jobwire.silver_jobs", "jobwire.silver_attempts"]
        assert values(spark.table("jobwire.silver_jobs"), "id", "finished_at") == expected
        again = attempts(spark, attempt(day, day + 1, job_id="B"), attempt(3 * day, None, job_id="c"))
        publish_by_spark(tables, "silver/attempts", again, "r2", ["2026-03-01", "2026-03-02"])
        register_tables(spark, lake)
        found = values(spark.sql("select * from jobwire.silver_attempts where part > ''"), "job_id", "part")
        assert found == [("B", "2026-03-02"), ("c", "2026-03-04")]
        assert values(
            spark.table("jobwire.silver_attempts").drop("part"), *columns_of("silver/attempts").names
        ) == values(tables.table(spark, "silver/attempts"), *columns_of("silver/attempts").names)
    finally:
        spark.sql("drop database if exists jobwire cascade")
    assert read_table(lake, "silver/attempts").num_rows == 2  # dropping removes no file
