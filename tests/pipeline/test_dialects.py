"""What each protocol's dialect says about jobs, compared with what real stores hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pyarrow as pa
import pytest

from jobwire import Backoff, urls
from jobwire.backends.pgboss.rules import CAPABILITIES
from jobwire.connection import load_backend
from jobwire.model import Schedule
from jobwire.options import Keep
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.move.schedules import plan_schedules
from jobwire.pipeline.move.survey import Survey
from jobwire.pipeline.stores.blocking import BlockingBackend
from jobwire.pipeline.stores.dialect import all_dialects, dialect_of
from jobwire.sync import Queue
from pipeline.stores.reading import jobs_in, opened

LARGE = {"opts": '{"removeOnComplete":20000,"removeOnFail":{"count":30000,"age":60},"attempts":0}'}
URLS = {"bullmq": "bullmq+redis://127.0.0.1:1", "pgboss": "pgboss+postgresql://127.0.0.1:1/a"}


@pytest.mark.parametrize(
    ("protocol", "raw", "options"),
    [
        (
            "bullmq",
            {"opts": '{"backoff":{"type":"exponential","delay":2000,"jitter":0.5},"removeOnComplete":true}'},
            {"backoff": Backoff.exponential(2.0, jitter=0.5), "keep_completed": Keep.NONE},
        ),
        ("bullmq", {"opts": '{"backoff":500,"removeOnFail":{"count":5,"age":60}}'},
         {"backoff": Backoff.fixed(0.5), "keep_failed": Keep(5, 60.0)}),
        ("bullmq", {"opts": '{"removeOnComplete":-1,"removeOnFail":7}'},
         {"keep_completed": Keep.ALL, "keep_failed": Keep(7)}),
        ("bullmq", {"opts": '{"backoff":{"type":"mine"}}'}, {"backoff": Backoff.custom("mine")}),
        ("bullmq", {"opts": "not json"}, {}),
        ("pgboss", {"retry_delay": 3, "retry_backoff": False, "expire_seconds": 60},
         {"backoff": Backoff.fixed(3.0), "timeout": 60.0}),
        ("pgboss", {"retry_delay": 0, "retry_backoff": False, "expire_seconds": 900}, {}),
        ("pgboss", {"retry_delay": 2, "retry_backoff": True, "retry_delay_max": 30},
         {"backoff": Backoff.exponential(2.0, cap=30.0)}),
        (
            "bridgemq",
            {"job": {"retry": {"attempts": 2, "backoff": {"type": "linear", "delay": 1500, "maxDelay": 9000,
                                                          "jitter": True}}, "x": {"timeoutMs": 2500}}},
            {"backoff": Backoff.linear(1.5, jitter=0.25, cap=9.0), "timeout": 2.5},
        ),
        ("monque", {"anything": 1}, {}),
    ],
)  # fmt: skip
def test_options_are_read_from_the_native_fields(protocol: str, raw: dict[str, Any], options: dict[str, Any]) -> None:
    carried = dialect_of(protocol).carried(raw)

    assert (carried.options, carried.lost) == (options, carried.lost[:0])


@pytest.mark.parametrize(
    ("protocol", "raw", "lost"),
    [
        ("bullmq", {"opts": '{"backoff":{"type":"fixed","delay":-1},"lifo":true,"kl":5}'},
         ["lifo", "keepLogs", "backoff"]),
        ("bullmq", {"opts": '{"removeOnComplete":{"age":-1}}'}, ["keep_completed"]),
        ("bridgemq", {"job": {"retry": {"skipOn": ["E"]}, "target": {"server": "s1"}, "metadata": {}}},
         ["target", "skipOn"]),
    ],
)  # fmt: skip
def test_native_options_that_a_move_has_no_place_for_are_named(
    protocol: str, raw: dict[str, Any], lost: list[str]
) -> None:
    assert dialect_of(protocol).carried(raw) == ({}, lost)


@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("bullmq", {"backoff": Backoff.exponential(2.0), "keep_failed": Keep(5, 60.0)}),
        ("pgboss", {"backoff": Backoff.fixed(3.0), "timeout": 60.0}),
        ("bridgemq", {"backoff": Backoff.linear(1.5, cap=9.0), "timeout": 2.5}),
    ],
)
def test_options_of_a_stored_job_are_found_in_the_row_that_its_store_reads(
    protocol: str, options: dict[str, Any], place: Callable[[str], str]
) -> None:
    url = place(protocol)
    with Queue("mail", url) as queue:
        queue.add({"n": 1}, attempts=3, **options)
    store = opened(url, "mail")
    try:
        [row] = jobs_in(store).values()
    finally:
        store.close()

    assert dialect_of(protocol).carried(orjson.loads(row["raw"])) == (options, [])


@pytest.mark.parametrize(
    ("protocol", "job", "raw", "key"),
    [
        ("bullmq", {"id": "repeat:nightly:1"}, {"rjk": "nightly"}, "nightly"),
        ("monque", {"id": "1", "unique_key": "nightly"}, {"repeatInterval": "0 3 * * *"}, "nightly"),
        ("monque", {"id": "1", "unique_key": "order-1"}, {}, None),
        (
            "bridgemq",
            {"id": "cron:mail:nightly", "native_state": "waiting"},
            {"job": {"schedule": {"cron": "0 3 * * *"}, "x": {"cronKey": "nightly"}}},
            "nightly",
        ),
        ("bridgemq", {"id": "a", "native_state": "waiting"}, {"job": {"schedule": {"delay": 5}}}, None),
        ("pgboss", {"id": "1"}, {}, None),
    ],
)
def test_the_job_of_a_schedule_has_the_key_of_its_schedule(
    protocol: str, job: dict[str, Any], raw: dict[str, Any], key: str | None
) -> None:
    assert dialect_of(protocol).schedule_key(job, raw) == key


def test_large_counts_of_jobs_to_keep_go_along() -> None:
    row = surveyed("bullmq", LARGE)

    assert row["lost"] == ""
    assert orjson.loads(row["options"]) == {
        "keep_completed": {"count": 20_000, "age": None},
        "keep_failed": {"count": 30_000, "age": 60.0},
    }


def test_counts_of_jobs_to_keep_are_reported_as_lost_where_the_target_has_no_place_for_them() -> None:
    assert surveyed("pgboss", LARGE)["lost"] == "keep_completed,keep_failed"


@pytest.mark.parametrize("name", ["pgboss", "pg-boss", "PostgreSQL"])
def test_a_schedule_goes_by_the_protocol_and_not_by_its_display_name(name: str) -> None:
    found = [
        Schedule("often", "mail", "mail", every=15),
        Schedule("hourly", "mail", "mail", every=3600),
        Schedule("fast", "mail", "mail", cron="*/10 * * * * *"),
    ]
    source = fake_control("bullmq", replace(dialect_of("bullmq").rules.capabilities), found)
    target = fake_control("pgboss", replace(CAPABILITIES, protocol=name), [])

    moves = plan_schedules(source, "mail", target, "mail")

    assert [(move.key, move.stays) for move in moves] == [("often", True), ("hourly", False), ("fast", True)]


def test_no_word_for_an_event_has_two_meanings() -> None:
    meanings: dict[str, set[str]] = {}
    for dialect in all_dialects():
        for kind, words in dialect.event_words.items():
            for word in words:
                meanings.setdefault(word, set()).add(kind)

    assert {word: kinds for word, kinds in meanings.items() if len(kinds) > 1} == {}


def surveyed(target: str, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A waiting job of BullMQ as a move to the target sees it."""
    job = {name: pa.array([None], kind) for name, kind in zip(JOBS.names, JOBS.arrow.types, strict=True)}
    given = {"id": "a", "name": "mail", "state": "waiting", "native_state": "wait", "payload": "{}"}
    given["raw"] = orjson.dumps(raw).decode()
    batch = pa.record_batch([pa.array([given[n]]) if n in given else job[n] for n in job], schema=JOBS.arrow)
    survey = Survey("bullmq", "store", "mail", URLS[target], "mail", frozenset(), frozenset())
    [row] = [row for found in survey(iter([batch])) for row in found.to_pylist()]
    assert row["hindrance"] is None, row
    return row


def fake_control(protocol: str, capabilities: Any, schedules: list[Schedule]) -> BlockingBackend:
    """A store that is not there: planning asks it for its schedules and for nothing else."""
    backend = load_backend(urls.parse(URLS[protocol]))
    shown = SimpleNamespace(
        check=backend.check, capabilities=capabilities, schedules=SimpleNamespace(schedules=lambda queue: schedules)
    )
    control = SimpleNamespace(url=URLS[protocol], backend=shown, can=capabilities, ask=lambda answer: answer)
    return cast("BlockingBackend", control)
