"""Schedulers: exit codes by quality, what came since the last time, lineage, and the examples for other programs."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import jsonschema
import pytest
import redis
import yaml

from jobwire.cli import main
from jobwire.pipeline.history.failed_checks import failed_checks
from jobwire.pipeline.lake import run_log
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.tables import columns_of
from jobwire.pipeline.sql import query, write_views
from jobwire.pipeline.sql.names import TABLES, sql_name
from jobwire.sync import Queue
from pipeline.report_samples import MONDAY
from pipeline.written_lake import STORE, fill, job, publish

EXAMPLES = Path(__file__).parents[2] / "examples" / "orchestration"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(lake: str, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a command of the pipeline on the lake, and returns its exit code, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(["pipeline", *map(str, arguments), "--lake", lake])
        return code, *capfd.readouterr()

    return run


def built(lake: str) -> None:
    """Marks the lake as built from what is ingested, so that a build has nothing to do for Spark."""
    LakeFiles(lake).write("checkpoints/built.json", Lake(lake).bronze_state())


def fail_a_check(lake: str) -> None:
    check = {"store": STORE, "queue": "emails", "note": "left out"}
    rows = [{"check_name": "malformed rows", "value": 3, "ok": False}, {"check_name": "gaps", "value": 9, "ok": False}]
    publish(
        lake, "gold/quality", [check | row for row in rows] + [check | {"check_name": "jobs", "value": 1, "ok": True}]
    )


def test_failed_checks_of_quality_are_an_exit_code_if_that_is_asked_for(lake: str, command: Command) -> None:
    fill(lake)
    built(lake)
    assert command("build", "--fail-on", "quality")[0] == 0
    fail_a_check(lake)

    code, out, err = command("build", "--fail-on", "quality")

    assert (code, out) == (5, "nothing new since the last build\n")
    assert err.splitlines()[-2:] == [
        f"jobwire: gaps: 9 in {STORE}/emails (left out)",
        f"jobwire: malformed rows: 3 in {STORE}/emails (left out)",
    ]
    assert command("build")[0] == 0
    assert command("build", "--fail-on", "everything")[0] == 2
    assert command("run", "--fail-on", "everything")[0] == 2


def test_a_lake_of_campaigns_alone_has_no_failed_checks(lake: str) -> None:
    assert failed_checks(lake) == []


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_a_run_ends_by_the_quality_of_what_it_has_built(
    command: Command, jobwire_bullmq_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with Queue("mail", jobwire_bullmq_url) as queue:
        added = queue.add(1)
    prefix = jobwire_bullmq_url.partition("prefix=")[2]
    [key] = redis_client.keys(f"{prefix}:mail:{added.id}")
    redis_client.hset(key, "timestamp", "yesterday")

    code, _, err = command("run", jobwire_bullmq_url, "--out", tmp_path / "report", "--fail-on", "quality")

    assert (code, "jobwire: malformed rows: 1 in" in err) == (5, True)
    assert (tmp_path / "report/report.html").exists()


def test_a_report_since_the_last_one_begins_with_its_last_hour(lake: str, command: Command, tmp_path: Path) -> None:
    fill(lake, days=2)
    everything = json.loads(command("report", "--since-last", "--out", tmp_path, "--json")[1])
    assert datetime.fromisoformat(everything["since"]) == MONDAY
    fill(lake, days=5)

    new = json.loads(command("report", "--since-last", "--out", tmp_path, "--json")[1])

    assert datetime.fromisoformat(new["since"]) == MONDAY + timedelta(days=1)
    assert datetime.fromisoformat(new["until"]) == MONDAY + timedelta(days=4, hours=1)
    assert new["rows"]["throughput_hourly"] == 4
    assert command("report", "--since-last", "--from", "2026-01-01")[0] == 2


# What the specification of OpenLineage (2-0-2) requires of an event of a run.
NAMED = {
    "type": "object",
    "required": ["namespace", "name"],
    "properties": {name: {"type": "string", "minLength": 1} for name in ("namespace", "name")},
}
FACET = {"type": "object", "required": ["_producer", "_schemaURL"]}
RUN_EVENT = {
    "type": "object",
    "required": ["eventTime", "producer", "schemaURL", "run", "job"],
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "producer": {"type": "string", "pattern": "^https://"},
        "schemaURL": {"type": "string", "pattern": "^https://openlineage.io/spec/.*RunEvent$"},
        "run": {
            "type": "object",
            "required": ["runId"],
            "properties": {"facets": {"type": "object", "additionalProperties": FACET}},
        },
        "job": NAMED,
        "inputs": {"type": "array", "items": NAMED},
        "outputs": {"type": "array", "items": NAMED},
    },
}


def events_of(printed: str) -> list[dict[str, Any]]:
    events = [*map(json.loads, printed.splitlines())]
    for event in events:
        jsonschema.validate(event, RUN_EVENT)
        assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
        uuid.UUID(event["run"]["runId"])
    return events


def test_runs_are_events_of_openlineage(lake: str, command: Command) -> None:
    files = LakeFiles(lake)
    Path(lake, "bronze/job_snapshots").mkdir(parents=True)
    with run_log.recorded(files, "ingest") as run:
        run.offsets.update({STORE: {"emails": "1-0"}, "pgboss+postgresql://a": None})
        run.note(unchanged=["pgboss+postgresql://a"])
    with run_log.recorded(files, "build") as run:
        run.note(checksums={"silver/jobs": "1", "gold/retries": "2"})
    with pytest.raises(ZeroDivisionError), run_log.recorded(files, "report"):
        _ = 1 / 0
    with pytest.raises(KeyboardInterrupt), run_log.recorded(files, "move", store=STORE, queue="a", to_store="b"):
        raise KeyboardInterrupt

    events = events_of(command("lineage", "--namespace", "prod")[1])

    assert [(event["job"]["name"], event["eventType"]) for event in events] == [
        ("pipeline ingest", "START"),
        ("pipeline ingest", "COMPLETE"),
        ("pipeline build", "START"),
        ("pipeline build", "COMPLETE"),
        ("pipeline report", "START"),
        ("pipeline report", "FAIL"),
        ("pipeline move", "START"),
        ("pipeline move", "ABORT"),
    ]
    root = files.root
    assert events[1]["inputs"] == [{"namespace": STORE, "name": "queues"}]
    assert events[1]["outputs"] == events[3]["inputs"] == [{"namespace": root, "name": "bronze/job_snapshots"}]
    assert [one["name"] for one in events[3]["outputs"]] == ["gold/retries", "silver/jobs"]
    assert events[5]["run"]["facets"]["errorMessage"]["message"] == "ZeroDivisionError: division by zero"
    assert (events[7]["inputs"], events[7]["outputs"]) == (
        [{"namespace": STORE, "name": "a"}],
        [{"namespace": "b", "name": "a"}],
    )
    assert {event["job"]["namespace"] for event in events} == {"prod"}
    assert len({event["run"]["runId"] for event in events}) == 4


def test_lineage_since_the_last_call_has_each_end_once(lake: str, command: Command) -> None:
    files = LakeFiles(lake)
    with run_log.recorded(files, "build"):
        under_way = events_of(command("lineage", "--since-last")[1])
    ended = events_of(command("lineage", "--since-last")[1])

    assert [event["eventType"] for event in under_way] == ["START"]
    assert [event["eventType"] for event in ended] == ["START", "COMPLETE"]
    assert ended[0] == under_way[0]
    assert command("lineage", "--since-last") == (0, "", "")
    assert len(events_of(command("lineage")[1])) == 2


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, lake: str, tmp_path: Path) -> ModuleType:
    """The steps that both examples of schedulers call."""
    monkeypatch.setenv("JOBWIRE", f"{sys.executable} -m jobwire")
    monkeypatch.setenv("JOBWIRE_LAKE", lake)
    monkeypatch.setenv("JOBWIRE_EXPORT", str(tmp_path / "delta"))
    spec = importlib.util.spec_from_file_location("steps", EXAMPLES / "steps.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_steps_of_the_examples_do_their_work_and_tell_poor_quality_from_failure(
    steps: ModuleType, lake: str, tmp_path: Path
) -> None:
    fill(lake)
    built(lake)
    steps.export()
    assert (tmp_path / "delta/silver_jobs/_delta_log").is_dir()
    assert [event["eventType"] for event in events_of(steps.lineage())] == ["START", "COMPLETE"]
    fail_a_check(lake)
    with pytest.raises(steps.PoorQuality, match="malformed rows: 3"):
        steps.build()


@pytest.mark.parametrize("file", ["airflow_dag.py", "dagster_assets.py"])
def test_the_examples_of_schedulers_call_steps_that_exist(file: str, steps: ModuleType) -> None:
    tree = ast.parse((EXAMPLES / file).read_text())
    compile(tree, file, "exec")
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "steps"
    }
    assert used >= {"ingest", "build", "export", "PoorQuality"}
    assert [name for name in used if not hasattr(steps, name)] == []


def sources() -> dict[str, Any]:
    [source] = yaml.safe_load((EXAMPLES / "dbt/models/sources.yml").read_text())["sources"]
    return source


def queries() -> Iterator[tuple[str, str]]:
    """Yields the tests of the sources as queries for rows that fail, as dbt makes them."""
    for table in sources()["tables"]:
        for column in table["columns"]:
            for test in column.get("data_tests", ()):
                kind, options = (test, {}) if isinstance(test, str) else next(iter(test.items()))
                name = f"{table['name']}.{column['name']} {kind}"
                if kind == "not_null":
                    yield name, f"select 1 from {table['name']} where {column['name']} is null"
                    continue
                assert kind == "accepted_values"
                values = options["arguments"]["values"]
                texts = ", ".join(
                    str(one) if options["arguments"].get("quote") is False else f"'{one}'" for one in values
                )
                yield name, f"select 1 from {table['name']} where {column['name']} not in ({texts})"


def rendered(path: Path) -> str:
    """A model or test of dbt with the sources in place."""
    text = path.read_text()
    for table in sources()["tables"]:
        text = text.replace(f"{{{{ source('jobwire', '{table['name']}') }}}}", table["name"])
    assert "{{" not in text
    return text


def test_the_sources_of_dbt_have_tables_and_columns_that_exist() -> None:
    known = {sql_name(table): columns_of(table).names for table in TABLES}
    for table in sources()["tables"]:
        named = {column["name"] for column in table["columns"]}
        if table.get("freshness", True) is not None:
            named.add(table.get("loaded_at_field", sources()["loaded_at_field"]))
        assert named <= {*known[table["name"]]}


def test_the_tests_of_dbt_pass_on_a_sound_lake_and_find_what_is_wrong(lake: str, tmp_path: Path) -> None:
    fill(lake)
    write_views(lake, tmp_path / "lake.duckdb")
    singular = {path.stem: rendered(path) for path in (EXAMPLES / "dbt/tests").glob("*.sql")}
    tests = {**dict(queries()), **singular}

    def failing() -> set[str]:
        with duckdb.connect(tmp_path / "lake.duckdb", read_only=True) as views:
            return {name for name, text in tests.items() if views.execute(text).fetchall()}

    assert len(tests) > 15
    assert failing() == set()
    publish(lake, "silver/jobs", [job(1), job(1, state="lost"), job(2, queue=None)])
    fail_a_check(lake)
    assert failing() == {
        "silver_jobs.state accepted_values",
        "silver_jobs.queue not_null",
        "gold_quality.ok accepted_values",
        "one_row_per_job",
    }


def test_the_model_of_dbt_runs(lake: str) -> None:
    fill(lake)
    [row, *_] = query(lake, f"{rendered(EXAMPLES / 'dbt/models/failing_queues.sql')} order by day").to_pylist()
    assert (row["queue"], row["added"], row["failed"], row["failed_share"]) == ("emails", 20, 4, 0.2)
    assert row["day"] == MONDAY.astimezone(UTC).date()
