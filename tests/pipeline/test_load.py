"""Files, tables and DataFrames become jobs: each row once, whatever happens on the way."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobwire import NewJob, State, connect
from jobwire.backends.pgboss import Boss
from jobwire.boundary import Backend, PreparedJob
from jobwire.errors import InvalidOption, JobwireError
from jobwire.pipeline.datasource.add_rows import added
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.load.load import load
from jobwire.pipeline.load.source import identity_of, kind_of
from jobwire.preparing import prepare
from jobwire.sync import Queue

pytestmark = [pytest.mark.xdist_group("spark-movers"), pytest.mark.timeout(600)]
Place = Callable[[str], str]


def jobs(url: str, state: State = State.WAITING) -> list[Any]:
    with Queue("mail", url) as queue:
        return list(queue.jobs(state=state, limit=10_000))


def test_rows_of_a_table_become_jobs_on_every_protocol_and_once(spark: Any, url: str, lake: str) -> None:
    frame = spark.range(500).selectExpr("concat('order-', id) AS id", "id AS n", "'żółć 🙂' AS text")

    first = load(spark, frame, url, "mail", lake=Lake(lake), run="monday")
    again = load(spark, frame.repartition(5), url, "mail", lake=Lake(lake), run="monday")

    assert sorted(job.data["n"] for job in jobs(url)) == list(range(500))
    assert {job.data["text"] for job in jobs(url)} == {"żółć 🙂"}
    assert (first.rows, first.added, first.there_before, first.missing) == (500, 500, 0, 0)
    assert (again.rows, again.added + again.there_before, again.missing) == (500, 500, 0)


def test_equal_rows_without_ids_are_all_added_and_a_second_run_finds_them_however_they_are_partitioned(
    spark: Any, place: Place
) -> None:
    url = place("bullmq")
    frame = spark.createDataFrame([("a", 1)] * 30 + [("b", None)] * 3, "to string, n int")

    first = load(spark, frame.repartition(4), url, "mail", run="monday")
    again = load(spark, frame.coalesce(1), url, "mail", run="monday")
    other = load(spark, frame, url, "mail", run="tuesday")

    assert (first.added, again.added, again.there_before, other.added) == (33, 0, 33, 33)
    assert {str(job.data) for job in jobs(url)} == {"{'to': 'a', 'n': 1}", "{'to': 'b', 'n': None}"}


def test_a_file_that_was_touched_or_has_grown_adds_its_new_rows_only(spark: Any, place: Place, tmp_path: Path) -> None:
    url, path = place("bullmq"), tmp_path / "people.csv"
    old = "to,priority,run_at\nzoë,3,\nzoë,3,\nbob,,2031-01-01T00:00:00.250Z\n"
    path.write_text(old, encoding="utf-8")

    first = load(spark, str(path), url, "mail")
    os.utime(path, (1, 1))
    touched = load(spark, str(path), url, "mail")
    path.write_text(f"{old}ann,,\nzoë,3,\n", encoding="utf-8")
    grown = load(spark, str(path), url, "mail")

    [late] = jobs(url, State.DELAYED)
    assert (late.data, late.run_at) == ({"to": "bob"}, datetime(2031, 1, 1, 0, 0, 0, 250_000, UTC))
    assert sorted(job.data["to"] for job in jobs(url)) == ["ann", "zoë", "zoë", "zoë"]
    assert (first.added, touched.added, touched.there_before) == (3, 0, 3)
    assert (grown.added, grown.there_before, grown.run) == (2, 3, first.run)


def test_a_value_that_changes_an_inferred_type_adds_its_own_row_only(spark: Any, place: Place, tmp_path: Path) -> None:
    url, path = place("bullmq"), tmp_path / "numbers.csv"
    path.write_text("n\n1\n2\n2\n", encoding="utf-8")
    first = load(spark, str(path), url, "mail", infer=True)
    path.write_text("n\n1\n2\n2\n1.5\n", encoding="utf-8")
    grown = load(spark, str(path), url, "mail", infer=True)

    assert sorted(job.data["n"] for job in jobs(url)) == [1, 1.5, 2, 2]
    assert (first.added, grown.added, grown.there_before) == (3, 1, 3)


def test_a_path_identifies_its_source_however_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = identity_of(str(tmp_path / "a.csv"), "csv")

    assert identity_of("a.csv", "csv") == identity_of("./a.csv", "csv") == here
    assert identity_of("b.csv", "csv") != here != identity_of("a.csv", "table")


def test_rows_with_the_id_of_another_content_are_reported(spark: Any, url: str) -> None:
    first = spark.createDataFrame([("1", 1), ("2", 2)], "id string, n int")
    second = spark.createDataFrame([("1", 1), ("2", 7), ("3", 3), ("3", 4)], "id string, n int").coalesce(1)

    load(spark, first, url, "mail")
    result = load(spark, second, url, "mail")

    assert (result.added, result.there_before, result.changed, result.refused) == (1, 1, 2, 0)
    assert result.reasons == {"a job with this id and another payload is there": 2}
    assert sorted(job.data["n"] for job in jobs(url)) == [1, 2, 3]


def test_values_of_every_type_have_their_json_form(spark: Any, place: Place) -> None:
    url = place("bullmq")
    frame = spark.sql("""SELECT CAST(12.50 AS DECIMAL(9, 2)) AS price, DATE '2031-01-02' AS day, X'00FF' AS raw,
        TIMESTAMP '2031-01-02 03:04:05.6' AS at, TIMESTAMP_NTZ '2031-01-02 03:04:05' AS local, 1.5D AS ratio,
        named_struct('tags', array('a', NULL), 'sum', CAST(1 AS DECIMAL(3, 1))) AS nested, map(7, true) AS by_number,
        map() AS none, INTERVAL '26:00:00.5' HOUR TO SECOND AS took""")

    load(spark, frame, url, "mail")

    [job] = jobs(url)
    assert job.data == {
        "price": "12.50",
        "day": "2031-01-02",
        "raw": "AP8=",
        "at": "2031-01-02T03:04:05.600000Z",
        "local": "2031-01-02T03:04:05Z",
        "ratio": 1.5,
        "nested": {"tags": ["a", None], "sum": "1.0"},
        "by_number": {"7": True},
        "none": {},
        "took": "PT93600.5S",
    }


def test_lines_of_json_keep_exactly_their_own_keys(spark: Any, place: Place, lake: str, tmp_path: Path) -> None:
    url, path = place("pgboss"), tmp_path / "lines.jsonl"
    path.write_text('{"a":1}\n{"b":[1.5,null]}\n[1,2]\n"text"\n"é"\n', encoding="latin1")

    result = load(spark, str(path), url, "mail", lake=Lake(lake))

    assert sorted(str(job.data) for job in jobs(url)) == ["[1, 2]", "text", "{'a': 1}", "{'b': [1.5, None]}"]
    assert result.reasons == {"record: has bytes that are not UTF-8 (got b'\"\\xe9\"')": 1}


def test_columns_can_be_given_their_meaning(spark: Any, place: Place) -> None:
    url = place("bullmq")
    frame = spark.createDataFrame([("o1", '{"x":1}', "vip", 7)], "no string, body string, c string, d int")

    load(spark, frame, url, "mail", columns={"id": "no", "payload": "body", "name": "c"})

    [job] = jobs(url)
    assert (job.id, job.data, job.name) == ("o1", {"x": 1}, "vip")


def test_rows_that_can_not_become_jobs_go_to_the_quarantine_with_their_reason_and_the_others_are_loaded(
    spark: Any, place: Place, lake: str, tmp_path: Path
) -> None:
    url, path = place("bullmq"), tmp_path / "people.csv"
    path.write_text("to,priority\nann,1\nbob,high\ncy,1,too,many\ndot,-4\nzoé,1\n", encoding="latin1")

    result = load(spark, str(path), url, "mail", lake=Lake(lake))
    load(spark, str(path), url, "mail", lake=Lake(lake))

    found = Lake(lake).table(spark, "quarantine_load").collect()
    reasons = sorted(row["reason"] for row in found)
    assert (result.rows, result.added, result.rejected) == (5, 1, 4)
    assert [job.data for job in jobs(url)] == [{"to": "ann"}]
    assert reasons[0] == "priority: must be a whole number (got 'high')"
    assert "must lie between 0" in reasons[1]
    assert reasons[2] == "record: does not fit the header (got 'cy,1,too,many')"
    assert reasons[3] == "record: has bytes that are not UTF-8 (got 'zo\ufffd,1')"
    assert {(row["source"], row["queue"]) for row in found} == {("load", "mail")}
    assert "dot" in next(row["record"] for row in found if "must lie" in row["reason"])


def test_a_load_that_may_not_lose_rows_writes_nothing_at_all(spark: Any, place: Place, lake: str) -> None:
    url = place("pgboss")
    frame = spark.createDataFrame([("1", '{"ok":1}'), ("2", "{nope")], "id string, payload string")

    with pytest.raises(JobwireError, match="1 row can't become a job, nothing was written: not JSON"):
        load(spark, frame, url, "mail", lake=Lake(lake), invalid="fail")
    with pytest.raises(JobwireError, match="with a lake"):
        load(spark, frame, url, "mail")

    assert jobs(url) == []


def test_a_job_that_is_too_large_is_rejected(spark: Any, place: Place, lake: str) -> None:
    url = place("monque")
    frame = spark.createDataFrame([("x" * 2000,), ("y",)], "text string")

    result = load(spark, frame, url, "mail", lake=Lake(lake), size_limit=1000)

    assert (result.added, result.rejected) == (1, 1)
    assert next(iter(result.reasons)).startswith("Job payload size")


def test_a_held_queue_is_paused_for_the_load_and_runs_again_afterwards(spark: Any, place: Place, lake: str) -> None:
    url = place("bullmq")
    paused: list[bool] = []

    def look(stage: str, done: int, total: int | None) -> None:
        if stage == "verify":
            with Queue("mail", url) as queue:
                paused.append(queue.admin.paused())

    load(spark, spark.range(3).selectExpr("id AS n"), url, "mail", lake=Lake(lake), hold=True, progress=look)

    with Queue("mail", url) as queue:
        assert (paused, queue.admin.paused()) == ([True, True], False)


def test_a_queue_that_somebody_paused_stays_paused_after_a_held_load(spark: Any, place: Place, lake: str) -> None:
    url = place("bullmq")
    with Queue("mail", url) as queue:
        queue.admin.pause()

    load(spark, spark.range(3).selectExpr("id AS n"), url, "mail", lake=Lake(lake), hold=True)

    with Queue("mail", url) as queue:
        assert queue.admin.paused()


def test_a_refusal_for_another_reason_than_the_id_is_told(spark: Any, place: Place) -> None:
    url = place("pgboss")
    frame = spark.createDataFrame([("1", "1", "k"), ("2", "2", "k")], "id string, payload string, unique_key string")

    result = load(spark, frame.coalesce(1), url, "mail")

    assert (result.added, result.refused) == (1, 1)
    assert len(result.reasons) == 1


def test_rows_that_the_queue_does_not_take_are_counted_and_the_others_are_loaded(spark: Any, place: Place) -> None:
    url = place("pgboss")

    async def make_queue() -> None:
        async with connect(url) as connection:
            await Boss(connection).create_queue("mail", policy="key_strict_fifo")

    asyncio.run(make_queue())
    keys = "CASE WHEN id % 7 <> 3 THEN concat('k', id) END AS unique_key"
    frame = spark.range(1500).selectExpr("concat('order-', id) AS id", "CAST(id AS STRING) AS payload", keys)

    result = load(spark, frame.coalesce(1), url, "mail")
    again = load(spark, frame.coalesce(1), url, "mail")

    refused = [n for n in range(1500) if n % 7 == 3]
    assert sorted(job.data for job in jobs(url)) == [n for n in range(1500) if n % 7 != 3]
    assert (result.rows, result.added, result.refused, result.missing) == (1500, 1500 - len(refused), len(refused), 0)
    assert (again.added, again.there_before, again.refused) == (0, result.added, len(refused))
    [(reason, count)] = result.reasons.items()
    assert (count, "takes no job without a key" in reason) == (len(refused), True), reason


class FailsOnce:
    """A job of each row; the first attempt of a task dies on its way, with part of its rows in the store."""

    def __call__(self, backend: Backend, row: Mapping[str, Any]) -> PreparedJob:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0 and row["n"] % 2500 == 2400:
            raise RuntimeError("the task dies")
        return prepare(backend, "mail", NewJob({"n": row["n"]}, id=f"job-{row['id']}"), None)


def test_a_task_that_failed_half_way_and_is_run_again_adds_each_job_once(spark: Any, place: Place) -> None:
    url = place("bullmq")
    frame = spark.range(0, 5000, 1, 2).selectExpr("CAST(id AS STRING) AS id", "id AS n")

    answers = added(frame, url, "mail", FailsOnce()).collect()

    found = jobs(url)
    assert len(found) == len({job.data["n"] for job in found}) == 5000
    assert len(answers) == 5000
    assert sum(row["refused"] is not None for row in answers) == 4000


@pytest.mark.parametrize(
    ("source", "kind"),
    [("a.csv", "csv"), ("s3a://b/c/*.json.gz", "json"), ("x/y.parquet/", "parquet"), ("db.orders", "table")],
)
def test_the_ending_of_a_path_says_what_it_is(source: str, kind: str) -> None:
    assert kind_of(source) == kind


def test_an_unknown_source_is_refused_with_the_rule(spark: Any, place: Place, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="must be a table that Spark knows"):
        load(spark, "no_such_table", place("bullmq"), "mail")
    with pytest.raises(JobwireError, match="can't be read as csv"):
        load(spark, str(tmp_path / "none.csv"), place("bullmq"), "mail")


def test_every_load_has_its_line_in_the_diary(spark: Any, place: Place, lake: str) -> None:
    load(spark, spark.range(3).selectExpr("id AS n"), place("bullmq"), "mail", lake=Lake(lake))

    [row] = Lake(lake).runs(spark).collect()
    assert (row["command"], row["outcome"], row["rows_in"], row["rows_out"]) == ("load", "ok", 3, 3)
