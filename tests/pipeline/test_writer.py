"""A DataFrame becomes jobs, on every protocol, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.errors import PySparkException

from jobwire import State
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


def test_rows_without_ids_are_all_added_even_equal_ones_and_once_per_run(spark: Any, url: str) -> None:
    ready(url)
    frame = spark.createDataFrame([("a@example.com", 1)] * 5 + [("b@example.com", 2)], "to string, n int").coalesce(1)
    write(frame, url, run="monday")
    write(frame, url, run="monday")
    assert sorted(job.data["to"] for job in waiting(url)) == ["a@example.com"] * 5 + ["b@example.com"]
    write(frame, url, run="tuesday")
    assert len(waiting(url)) == 12


def test_a_due_time_makes_a_delayed_job(spark: Any, url: str) -> None:
    ready(url)
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    write(spark.createDataFrame([("one", "1", due)], "id string, payload string, run_at timestamp"), url)
    with Queue("mail", url) as queue:
        (job,) = queue.jobs(state=State.DELAYED)
        assert job.run_at == due


@pytest.mark.parametrize("payload", ["{", "nan", "'single'"])
def test_a_payload_that_is_no_json_fails_the_write_by_its_row(spark: Any, place: Any, payload: str) -> None:
    url = place("bullmq")
    with pytest.raises(PySparkException, match="order-7"):
        write(spark.createDataFrame([("order-7", payload)], "id string, payload string"), url)


def test_a_column_beside_the_payload_without_a_meaning_is_refused(spark: Any, place: Any) -> None:
    with pytest.raises(PySparkException, match="colour"):
        write(spark.createDataFrame([("1", "red")], "payload string, colour string"), place("bullmq"))


def test_overwriting_a_queue_is_refused(spark: Any, place: Any) -> None:
    writer = spark.createDataFrame([("1",)], "payload string").write.format("jobwire")
    with pytest.raises(PySparkException, match="append"):
        writer.option("url", place("bullmq")).option("queue", "mail").mode("overwrite").save()
