"""What `format("jobwire")` accepts, and what it says to what it doesn't."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobwire import State
from jobwire.errors import InvalidOption
from jobwire.pipeline.datasource.options import parse_options
from jobwire.pipeline.datasource.source import JobwireSource
from jobwire.pipeline.stores.address import store_name

URL = "bullmq+redis://127.0.0.1:6379/0"
DATABASE = "postgresql://app:hunter2@db.example/app"


def test_a_queue_and_its_url_are_enough() -> None:
    options = parse_options({"url": URL, "queue": "mail"})
    assert (options.table, options.store, options.max_rows, options.pushdown) == ("jobs", URL, None, False)


def test_without_a_queue_all_of_the_store_are_meant_and_an_array_names_several() -> None:
    assert parse_options({"url": URL}).queues is None
    assert parse_options({"url": URL, "queues": '["a", "b,c"]'}).queues == ("a", "b,c")
    with pytest.raises(InvalidOption, match="queue to write to"):
        _ = parse_options({"url": URL}).queue


def test_names_are_read_whatever_their_case_as_spark_gives_them() -> None:
    assert parse_options({"URL": URL, "Queue": "mail", "TABLE": "events"}).table == "events"


def test_what_to_read_is_told_by_state_name_and_time() -> None:
    wanted = parse_options(
        {
            "url": URL,
            "queue": "mail",
            "states": "failed, completed",
            "names": "welcome",
            "finished_before": "2026-01-31T12:00:00Z",
            "created_from": "2026-01-01",
        }
    ).wanted
    assert wanted.states == {State.FAILED, State.COMPLETED}
    assert wanted.names == {"welcome"}
    assert wanted.finished_before == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert wanted.created_from == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"queue": "mail", "url": "redis://127.0.0.1"}, "url"),
        ({"queue": "mail", "url": "memory:"}, "url"),
        ({"url": URL, "queue": ""}, "queue"),
        ({"url": URL, "queue": "mail", "queues": '["mail"]'}, "queues"),
        ({"url": URL, "queues": "mail"}, "queues"),
        ({"url": URL, "queues": "[1]"}, "queues"),
        ({"url": URL, "queue": "mail", "table": "job"}, "table"),
        ({"url": URL, "queue": "mail", "states": "failed,done"}, "states"),
        ({"url": URL, "queue": "mail", "parts": "0"}, "parts"),
        ({"url": URL, "queue": "mail", "max_rows": "-1"}, "max_rows"),
        ({"url": URL, "queue": "mail", "max_rows": "½"}, "max_rows"),
        ({"url": URL, "queue": "mail", "created_from": "yesterday"}, "created_from"),
        ({"url": URL, "queue": "mail", "pushdown": "yes"}, "pushdown"),
        ({"url": URL, "queue": "mail", "quue": "mail"}, "quue"),
        ({"url": URL, "path": "bullmq+redis://127.0.0.1:6379/1"}, "url"),
        ({"url": DATABASE, "queue": "mail"}, "url"),
        ({"url": URL, "table": "channels"}, "url"),
        ({"url": f"pgboss+{DATABASE}", "table": "campaigns"}, "url"),
        ({"table": "deliveries"}, "url"),
        ({"url": DATABASE, "table": "deliveries", "queue": "mail"}, "queue"),
        ({"url": DATABASE, "table": "deliveries", "states": "failed"}, "states"),
        ({"url": DATABASE, "table": "channels", "created_from": "2026-01-01"}, "created_from"),
        ({"url": URL, "queue": "mail", "changed_from": "2026-01-01"}, "changed_from"),
        ({"url": f"{DATABASE}?schema=pg_x", "table": "channels"}, "schema"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(options: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        parse_options(options)
    assert refused.value.field == field
    assert "hunter2" not in str(refused.value)


def test_a_table_of_campaigns_has_a_plain_url_also_as_the_path_of_load() -> None:
    for name in ("url", "path"):
        options = parse_options({name: DATABASE, "table": "deliveries", "finished_from": "2026-01-01", "parts": "2"})
        assert (options.url, options.store, options.parts) == (DATABASE, "postgresql://db.example/app", 2)
    assert parse_options({"path": URL, "queue": "mail"}).url == URL


def test_a_misspelt_table_gets_a_suggestion() -> None:
    with pytest.raises(InvalidOption, match="did you mean deliveries"):
        parse_options({"url": DATABASE, "table": "delivery"})


def test_tables_of_campaigns_are_neither_streamed_nor_written() -> None:
    source = JobwireSource({"url": DATABASE, "table": "channels"})
    with pytest.raises(InvalidOption, match="must be events for a stream: channels are read in batch"):
        source.streamReader(source.schema()).initialOffset()
    with pytest.raises(InvalidOption, match="must be jobs for a write"):
        source.writer(source.schema(), overwrite=False)


def test_a_store_has_one_name_whoever_logs_in() -> None:
    name = store_name("pgboss+postgresql://app:secret@db.example:5432/main?schema=jobs&sslmode=require")
    assert name == "pgboss+postgresql://db.example:5432/main?schema=jobs"
    assert name == store_name("pgboss+postgresql://root:other@db.example:5432/main?schema=jobs")


def test_an_embedded_store_is_named_by_its_folder_however_it_is_written() -> None:
    assert store_name("bullmq+embedded:./here/../here") == store_name("bullmq+embedded:here")
