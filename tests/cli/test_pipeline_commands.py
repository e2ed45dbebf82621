"""`jobwire pipeline …`: what it says when it can't, and that it says it before Spark is started."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from dashboard.sample_lake import publish
from jobwire.pipeline.history.marks import MARKS
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.run_log import recorded
from jobwire.pipeline.lake.schemas import RETRIES
from jobwire.pipeline.spark.doctor import diagnose
from jobwire.sync import Queue

Call = Callable[..., Any]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ingest", "run"])
def test_a_store_that_is_not_there_is_named_in_one_sentence(spawn: Call, command: str) -> None:
    said = spawn("pipeline", command, "bullmq+redis://app:hunter2@127.0.0.1:1")
    assert said.code == 3
    assert said.err.count("\n") == 1
    assert "127.0.0.1:1" in said.err
    assert "hunter2" not in said.err


@pytest.mark.slow
def test_an_unknown_queue_is_refused_by_its_name(spawn: Call, jobwire_url: str) -> None:
    with Queue("mail", jobwire_url) as queue:
        queue.add(1)
    said = spawn("pipeline", "ingest", jobwire_url, "--queue", "post")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "'post'" in said.err


@pytest.mark.slow
def test_a_lake_of_another_format_is_refused(spawn: Call, tmp_path: Path) -> None:
    with Lake(str(tmp_path / "lake")).run("test"):
        pass
    said = spawn("pipeline", "build", "--lake", "lake", "--format", "delta")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "begun as parquet" in said.err


@pytest.mark.slow
def test_a_report_of_nothing_says_what_to_do(spawn: Call) -> None:
    said = spawn("pipeline", "report", "--lake", "lake", "--json")
    assert said.code == 1
    assert said.err.endswith("run `jobwire pipeline run` first\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("build", "--conf", "spark.ui.enabled"),
        ("build", "--from", "yesterday"),
        ("tidy", "--keep", "long"),
        ("load", "a.csv", "--queue", "q"),
    ],
)
def test_a_wrong_option_is_a_usage_error(spawn: Call, arguments: tuple[str, ...]) -> None:
    assert spawn("pipeline", *arguments).code == 2


@pytest.mark.slow
def test_tidying_a_lake_without_anything_to_tidy_does_not_start_spark(spawn: Call) -> None:
    said = spawn("pipeline", "tidy", "--keep", "90d", "--lake", "lake", "--master", "nowhere")
    assert (said.code, said.out.splitlines()) == (
        0,
        ["merged 0 parts of ingested rows into 0", "0 rows in 0 parts expired"],
    ), said


@pytest.mark.slow
def test_a_lake_that_only_spark_reaches_needs_a_session(spawn: Call) -> None:
    said = spawn("pipeline", "build", "--lake", "hdfs://127.0.0.1:1/lake")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "is reached through Spark: start the command with spark-submit" in said.err


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_an_ingest_prints_what_it_took_in(call: Call, jobwire_url: str, tmp_path: Path) -> None:
    with Queue("mail", jobwire_url) as queue:
        queue.add(1)
    said = call("pipeline", "ingest", jobwire_url, "--lake", tmp_path / "lake", "--json")
    [source] = said.json["sources"]
    assert (source["events"], source["jobs"], source["error"]) == (2, 1, None)


@pytest.mark.slow
@pytest.mark.xdist_group("spark-apart")
@pytest.mark.usefixtures("quick_spark")
def test_the_doctor_looks_at_everything_and_fails_with_what_is_missing(spawn: Call, jobwire_url: str) -> None:
    stores = (jobwire_url, "bullmq+redis://127.0.0.1:1")
    said = spawn("pipeline", "doctor", *stores, "--lake", "lake", "--session", "--json")
    found = {finding["check"]: finding["ok"] for finding in json.loads(said.out)}
    assert said.code == 1
    assert [name for name, ok in found.items() if not ok] == ["bullmq+redis://127.0.0.1:1"]
    assert {"Java", "Spark", "session", "format jobwire", "lake"} < set(found)


def test_the_doctor_needs_no_session_and_looks_at_lakes_by_their_urls(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = [list(diagnose([], root))[-1] for root in (f"file://{tmp_path}/lake", str(tmp_path / "file"), "hdfs://a/b")]
    assert [one.ok for one in found] == [True, False, True]
    assert [words in one.detail for one, words in zip(found, ("GB free", "", "--session"), strict=True)] == [True] * 3
    assert [*(tmp_path / "lake" / "workings").iterdir()] == []
    assert {one.check for one in diagnose([], str(tmp_path / "lake"))} == {"Java", "Spark", "lake"}


def test_the_status_of_a_lake_is_read_from_its_small_files(call: Call, tmp_path: Path) -> None:
    lake, files = tmp_path / "lake", LakeFiles(str(tmp_path / "lake"))
    none = call("pipeline", "status", "--lake", lake)
    assert (none.code, "there is no lake at" in none.err) == (1, True)
    job = {
        "store": "s",
        "queue": "mail",
        "id": "1",
        "state": "completed",
        "created_at": datetime(2026, 5, 4, tzinfo=UTC),
    }
    publish(lake, {"silver/jobs": [{**job, "day": date(2026, 5, day)} for day in (3, 4)], "retries": []})
    files.write(MARKS, {"events": {"s-1": 1_777_852_800_000_000}, "snapshots": {"s-1": 7}})
    with recorded(files, "ingest") as run:
        run.rows_out = 2

    text, found = call("pipeline", "status", "--lake", lake), call("pipeline", "status", "--lake", lake, "--json").json

    assert [(one["table"], one["rows"], one["newest_day"]) for one in found["tables"]] == [
        ("silver/jobs", 2, "2026-05-04"),
        ("gold/retries", 0, None),
    ]
    assert [(one["command"], one["outcome"], one["rows_out"]) for one in found["runs"]] == [("ingest", "ok", 2)]
    assert found["marks"]["snapshots"] == {"s-1": 7}
    for words in ("silver/jobs", "2026-05-04", "s-1: events are built up to 2026-05-04 00:00:00 UTC", "generation 7"):
        assert words in text.out


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_work_prints_what_came_of_it(
    call: Call, jobwire_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "letters.py").write_text("def handle(job): return job.data\n")
    with Queue("mail", jobwire_url) as queue:
        queue.add(1)
    place = ("--url", jobwire_url, "--lake", tmp_path / "lake")

    good = call("pipeline", "work", "mail", "letters:handle", "--tasks", "1", *place, "--json")
    empty = call("pipeline", "work", "mail", "letters:handle", "--tasks", "1", *place)

    assert (good.json["completed"], good.json["left"], len(good.json["workers"])) == (1, 0, 1)
    assert (empty.code, empty.out) == (0, "no job waits in mail\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("mail", "no_such_shop:handle", "--tasks", "1"), 2, "no module 'no_such_shop'"),
        (("mail", "json:dumps", "--tasks", "0"), 2, "--tasks"),
        (("mail", "json:dumps"), 2, "Missing option '--tasks'"),
        (("mail", "json:dumps", "--tasks", "1", "--for", "soon"), 2, "duration"),
        (("mail", "json:dumps", "--tasks", "1", "--url", "bullmq+redis://127.0.0.1:1"), 3, "127.0.0.1:1"),
    ],
    ids=["module", "tasks", "no tasks", "time", "store"],
)
def test_work_that_can_not_begin_is_refused_before_spark_starts(
    spawn: Call, arguments: tuple[str, ...], code: int, words: str
) -> None:
    said = spawn("pipeline", "work", *arguments)
    assert said.code == code, said.err
    assert words in " ".join(said.err.replace("│", " ").split()), said.err
    assert "starting Spark" not in said.err


@pytest.mark.xdist_group("spark")
def test_a_shell_has_spark_the_lake_and_a_view_of_each_table(
    spark: Any, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    with lake.run("build") as run:
        row = ("store", "mail", "welcome", 2, 3, 1, 1.0)
        lake.publish(lake.stage("gold/retries", spark.createDataFrame([row], RETRIES.spark), run.id))
    program = """
print(lake.root)
for view in ("gold_retries", "runs"):
    print(view, spark.table(view).count(), spark.sql(f"select * from {view}").columns[1])
"""
    monkeypatch.setattr("sys.stdin", io.StringIO(program))

    said = call("pipeline", "shell", "--lake", lake.root)

    assert (said.code, said.out) == (0, f"{lake.root}\ngold_retries 1 queue\nruns 1 command\n")
