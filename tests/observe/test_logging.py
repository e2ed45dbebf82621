"""Logs for machines: every line a JSON object with its worker and its queue."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobwire import Connection, Queue, Unrecoverable, Worker
from jobwire.observe.logging import JobLog, JsonFormatter

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What jobwire has logged so far, as its formatter wrote it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("jobwire")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logger.removeHandler(handler)
    logger.setLevel(before)


def _format(record: logging.LogRecord, worker_id: str | None = None) -> dict[str, Any]:
    return json.loads(JsonFormatter(worker_id).format(record))


async def test_a_worker_writes_its_id_and_queue_as_fields_and_not_into_the_text(
    connection: Connection, lines: Lines
) -> None:
    async with Worker("emails", print, connection, worker_id="host-1-abc"):
        pass
    written = [line for line in lines() if line["logger"] == "jobwire.worker"]
    assert {(line["worker"], line["queue"]) for line in written} == {("host-1-abc", "emails")}
    assert [line["message"] for line in written if "stopped" in line["message"]] == ["stopped: 0 completed, 0 failed"]


async def test_the_log_of_jobs_tells_how_each_run_began_and_ended(
    connection: Connection, queue: Queue, lines: Lines
) -> None:
    async def handle(job: Any) -> None:
        if job.data == "hopeless":
            raise Unrecoverable("no address")

    fine, hopeless = await queue.add("fine", name="welcome"), await queue.add("hopeless", name="welcome")
    async with Worker("emails", handle, connection, observers=[JobLog()]) as worker:
        await fine.wait(20)
        with pytest.raises(Exception, match="no address"):
            await hopeless.wait(20)
    assert worker.stats.failed == 1
    told = [line for line in lines() if line["logger"] == "jobwire.jobs"]
    assert all((line["queue"], line["job_name"]) == ("emails", "welcome") for line in told), told
    assert [(line["level"], line["job"], line["message"].split(" job ")[0]) for line in told] == [
        ("debug", fine.id, "picked up"),
        ("info", fine.id, "completed"),
        ("debug", hopeless.id, "picked up"),
        ("warning", hopeless.id, "failed"),
    ]
    assert told[3]["message"].endswith(": no address")


def test_what_a_record_carries_besides_is_kept() -> None:
    record = logging.makeLogRecord({"name": "shop", "levelname": "INFO", "msg": "sent %s", "args": ("it",), "order": 7})
    line = _format(record)
    assert (line["logger"], line["level"], line["message"], line["order"]) == ("shop", "info", "sent it", 7)
    assert "worker" not in line


def test_records_of_others_get_the_worker_that_the_formatter_was_given() -> None:
    assert _format(logging.makeLogRecord({"msg": "sent"}), "host-1-abc")["worker"] == "host-1-abc"
    named = logging.makeLogRecord({"msg": "[host-2-def] sent", "worker": "host-2-def"})
    assert [_format(named, "host-1-abc")[key] for key in ("worker", "message")] == ["host-2-def", "sent"]


def test_an_exception_is_one_field_of_one_line() -> None:
    try:
        raise ValueError("bad\nthings")
    except ValueError as error:
        record = logging.makeLogRecord({"msg": "oh", "exc_info": (ValueError, error, error.__traceback__)})
    text = JsonFormatter().format(record)
    assert "\n" not in text
    assert json.loads(text)["traceback"].endswith("ValueError: bad\nthings")


@pytest.mark.parametrize("odd", ["\udc80", {1: 2}, {("a", "b"): 1}, {1, 2}, object()])
def test_nothing_that_a_record_carries_makes_a_line_fail(odd: Any) -> None:
    assert _format(logging.makeLogRecord({"msg": "sent %s", "args": ("it",), "odd": odd}))["message"] == "sent it"
