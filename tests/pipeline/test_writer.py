"""A DataFrame becomes jobs, on every protocol, once."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pyspark.errors import PySparkException

from jobwire import State
from jobwire.errors import InvalidOption
from jobwire.pipeline.datasource.row_to_job import Copies
from jobwire.pipeline.datasource.writer import Written, refuse_scattered
from jobwire.pipeline.stores.dialect import dialect_of
from jobwire.sync import Queue

pytestmark = pytest.mark.xdist_group("spark-movers")


def write(frame: Any, url: str, **options: str) -> None:
    frame.write.format("jobwire").option("url", url).option("queue", "mail").options(**options).mode("append").save()


def ready(url: str) -> None:
    """Have the queue's place made, where the protocol needs one."""
    with Queue("mail", url) as queue:
        queue.counts()


def waiting(url: str) -> list[Any]:
    with Queue("mail", url) as queue:
        return list(queue.jobs(state=State.WAITING, limit=10_000))


def test_rows_become_jobs_with_their_ids(spark: Any, url: str) -> None:
    ready(url)
    rows = [(f"order-{number}", f'{{"n":{number},"to":"żółć 🙂"}}') for number in range(250)]
    write(spark.createDataFrame(rows, "id string, payload string"), url)
    found = {job.id: job.data for job in waiting(url)}
    protocol = url.partition("+")[0]
    assert found == {dialect_of(protocol).native_id(f"order-{n}"): {"n": n, "to": "żółć 🙂"} for n in range(250)}


def test_a_second_write_of_the_same_rows_adds_nothing(spark: Any, url: str) -> None:
    ready(url)
    frame = spark.createDataFrame([(f"order-{number}", "1") for number in range(100)], "id string, payload string")
    write(frame, url)
    write(frame.repartition(3), url)
    assert len(waiting(url)) == 100


def test_rows_without_ids_are_all_added_even_equal_ones_and_once_per_run_however_partitioned(
    spark: Any, url: str
) -> None:
    ready(url)
    frame = spark.createDataFrame([("a@example.com", 1)] * 5 + [("b@example.com", 2)], "to string, n int").coalesce(1)
    write(frame, url, run="monday")
    write(frame.repartition(3, "to", "n"), url, run="monday")
    assert sorted(job.data["to"] for job in waiting(url)) == ["a@example.com"] * 5 + ["b@example.com"]
    write(frame, url, run="tuesday")
    assert len(waiting(url)) == 12


def test_many_rows_without_ids_are_written_once_per_run_however_they_are_partitioned(spark: Any, place: Any) -> None:
    url = place("bullmq")
    frame = spark.range(100).selectExpr("id % 60 AS n", "'x' AS text").repartition("n", "text")

    write(frame, url, run="monday")
    write(frame.coalesce(1), url, run="monday")
    write(frame.repartition(5, "n", "text"), url, run="monday")

    assert sorted(job.data["n"] for job in waiting(url)) == sorted(n % 60 for n in range(100))


def test_equal_rows_without_ids_in_several_partitions_fail_a_named_run_and_nothing_is_lost(
    spark: Any, place: Any
) -> None:
    url = place("bullmq")
    frame = spark.range(0, 10, 1, 2).selectExpr("'same' AS text")

    with pytest.raises(PySparkException, match=r"must be in one partition.* \(got '1 row in several partitions'\)"):
        write(frame, url, run="monday")
    write(frame.repartition("text"), url, run="monday")

    assert len(waiting(url)) == 10


def test_the_ids_of_rows_depend_on_their_contents_and_on_their_number_among_equals() -> None:
    rows = [{"n": 1}, {"n": 2}, {"n": 1}]

    def ids(order: list[int], scope: str = "monday") -> list[str]:
        copies = Copies(scope)
        return sorted(copies.id_of(rows[number], rows[number]) for number in order)

    assert ids([0, 1, 2]) == ids([2, 1, 0]) == ids([1, 0, 2])
    assert len(set(ids([0, 1, 2]))) == 3
    assert not set(ids([0, 1, 2])) & set(ids([0, 1, 2], "tuesday"))
    with pytest.raises(InvalidOption, match="2 rows in several partitions"):
        refuse_scattered([Written(1, 0, array("q", [1, 2, 3])), None, Written(1, 0, array("q", [3, 2, 4]))])


def test_a_stream_becomes_jobs_and_a_batch_that_is_run_again_adds_nothing(spark: Any, url: str, tmp_path: Path) -> None:
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    ready(url)
    source.mkdir()

    def stream(times: str) -> None:
        (source / f"{times}.json").write_text('{"n": 1}\n{"n": 1}\n{"n": 2}\n', encoding="utf-8")
        run_stream()

    def run_stream() -> None:
        rows = spark.readStream.schema("n int").json(str(source))
        sink = rows.writeStream.format("jobwire").option("url", url).option("queue", "mail")
        sink = sink.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        assert sink.start().awaitTermination(120)

    stream("first")
    stream("second")
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink()
    run_stream()

    assert sorted(job.data["n"] for job in waiting(url)) == [1, 1, 1, 1, 2, 2]


def test_a_due_time_makes_a_delayed_job(spark: Any, url: str) -> None:
    ready(url)
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    write(spark.createDataFrame([("one", "1", due)], "id string, payload string, run_at timestamp"), url)
    with Queue("mail", url) as queue:
        (job,) = queue.jobs(state=State.DELAYED)
        assert job.run_at == due


def test_a_payload_that_is_no_json_fails_the_write_by_its_row(spark: Any, place: Any) -> None:
    url = place("bullmq")
    with pytest.raises(PySparkException, match="order-7"):
        write(spark.createDataFrame([("order-7", "nan")], "id string, payload string"), url)


def test_a_column_beside_the_payload_without_a_meaning_is_refused(spark: Any, place: Any) -> None:
    with pytest.raises(PySparkException, match="colour"):
        write(spark.createDataFrame([("1", "red")], "payload string, colour string"), place("bullmq"))


WRONG: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "a write that overwrites": (
        "mode: must be append",
        lambda spark, url: _writer(spark, url).option("queue", "mail").mode("overwrite").save(),
    ),
    "a write without a queue": (
        "queue: must name the queue to write to",
        lambda spark, url: _writer(spark, url).mode("append").save(),
    ),
    "a write of events": (
        "table: must be jobs for a write",
        lambda spark, url: _writer(spark, url).option("table", "events").mode("append").save(),
    ),
    "a stream of jobs": (
        "table: must be events for a stream",
        lambda spark, url: _started(spark.readStream.format("jobwire").option("url", url).load(), "noop", {}),
    ),
    "a stream into a named run": (
        "run: can't be given for a stream",
        lambda spark, url: _started(
            spark.readStream.format("rate").load(), "jobwire", {"url": url, "queue": "mail", "run": "monday"}
        ),
    ),
    "columns of another table": (
        "schema: can't be given",
        lambda spark, url: spark.read.format("jobwire").schema("a int").load(url).collect(),
    ),
}


def _writer(spark: Any, url: str) -> Any:
    return spark.createDataFrame([("1",)], "payload string").write.format("jobwire").option("url", url)


def _started(frame: Any, sink: str, options: dict[str, str]) -> None:
    with TemporaryDirectory() as checkpoint:
        stream = frame.writeStream.format(sink).options(**options, checkpointLocation=checkpoint)
        stream.trigger(availableNow=True).start().awaitTermination(120)


@pytest.mark.parametrize("use", WRONG)
def test_a_wrong_use_is_refused_with_the_rule(spark: Any, place: Any, use: str) -> None:
    rule, act = WRONG[use]
    with pytest.raises(PySparkException) as raised:
        act(spark, place("bullmq"))
    assert (rule in str(raised.value), "UnboundLocalError" in str(raised.value)) == (True, False), raised.value
