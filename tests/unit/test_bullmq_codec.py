"""BullMQ's stored jobs read into jobwire's model, new jobs written as BullMQ writes them, and its rule of retries."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobwire.backends.bullmq import codec
from jobwire.backends.bullmq.work.retry import decide, milliseconds
from jobwire.backends.bullmq.work.stored_options import DEFAULTS, StoredBackoff, StoredOptions, kept, read_options
from jobwire.backoff import Backoff
from jobwire.boundary import Claim, ConsumerSettings, Failed
from jobwire.model import Job, State
from jobwire.options import Keep, NewJob, Parent, Unique

WHEN = 1794734305684


def read(state: State = State.ACTIVE, **fields: bytes) -> tuple[Job, str | None]:
    return codec.read_job("q", "7", fields, state)


def test_a_stored_job_is_read_whole() -> None:
    job, problem = read(
        State.FAILED,
        name=b"mail",
        data='{"to":"é"}'.encode(),
        opts=b'{"attempts":3}',
        timestamp=b"1794734305684",
        delay=b"0",
        priority=b"5",
        atm=b"2",
        ats=b"3",
        progress=b'{"p":1}',
        returnvalue=b"[1]",
        failedReason=b"boom",
        stacktrace=b'["one","two"]',
        processedOn=b"1794734306000",
        finishedOn=b"1794734307000",
        pb=b"w1",
    )
    assert problem is None
    assert (job.id, job.queue, job.name, job.data, job.state) == ("7", "q", "mail", {"to": "é"}, State.FAILED)
    assert (job.priority, job.attempts, job.attempts_made, job.progress, job.result) == (5, 3, 2, {"p": 1}, [1])
    assert (job.error, job.stacktrace, job.worker) == ("boom", ("one", "two"), "w1")
    assert job.created_at == datetime.fromtimestamp(WHEN / 1000, UTC)
    assert job.started_at is not None
    assert job.finished_at == datetime(2026, 11, 15, 9, 18, 27, tzinfo=UTC)
    assert job.run_at is None


def test_a_delayed_job_says_when_it_will_run() -> None:
    job, _ = read(State.DELAYED, data=b"1", timestamp=b"1794734305684", delay=b"60000")
    assert job.run_at == datetime.fromtimestamp((WHEN + 60_000) / 1000, UTC)
    retried, _ = codec.read_job("q", "7", {"data": b"1", "delay": b"5"}, State.DELAYED, "delayed", WHEN)
    assert retried.run_at == datetime.fromtimestamp(WHEN / 1000, UTC)


def test_a_legacy_counter_of_attempts_is_read() -> None:
    assert read(data=b"1", attemptsMade=b"4")[0].attempts_made == 4


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"undefined", b"NaN"])
def test_data_that_is_no_json_is_a_problem_and_kept_raw(data: bytes) -> None:
    job, problem = read(name=b"n", data=data)
    assert problem is not None
    assert problem.startswith("the job's data can't be read")
    assert job.data is None
    assert job.raw["data"] == data


def test_a_hash_without_anything_is_a_problem() -> None:
    assert read()[1] == "the job's data is missing from the store"


@given(
    some.dictionaries(
        some.sampled_from(["name", "data", "opts", "timestamp", "delay", "priority", "atm", "progress", "returnvalue"])
        | some.sampled_from(["failedReason", "stacktrace", "processedOn", "finishedOn", "pb", "anything"]),
        some.binary(max_size=30) | some.sampled_from([b"1e999", b"-1", b"null", b"[]", b"{}", b"9" * 400, b"nan"]),
    )
)
def test_no_stored_bytes_can_make_reading_fail(fields: dict[str, bytes]) -> None:
    job, _ = codec.read_job("q", "7", fields, State.WAITING)
    assert job.raw == fields


def test_fields_come_from_a_flat_reply() -> None:
    assert codec.raw_fields([b"name", b"n", b"\xff", b"x"]) == {"name": b"n", "\ufffd": b"x"}


@pytest.mark.parametrize(
    ("new", "opts"),
    [
        (NewJob(1), {"attempts": 0}),
        (NewJob(1, attempts=1), {"attempts": 1}),
        (NewJob(1, id="x", priority=0), {"jobId": "x", "priority": 0, "attempts": 0}),
        (NewJob(1, delay=timedelta(seconds=2)), {"delay": 2000, "attempts": 0}),
        (NewJob(1, keep_completed=Keep.ALL, keep_failed=Keep.NONE), {"removeOnComplete": False, "removeOnFail": True}),
        (NewJob(1, keep_completed=5, keep_failed=Keep(age=60)), {"removeOnComplete": 5, "removeOnFail": {"age": 60}}),
        (NewJob(1, keep_completed=Keep()), {"removeOnComplete": False}),
        (NewJob(1, backoff=Backoff.fixed(1.5)), {"backoff": {"type": "fixed", "delay": 1500}}),
        (NewJob(1, backoff=Backoff.custom("mine")), {"backoff": {"type": "mine", "delay": 0}}),
        (
            NewJob(1, unique=Unique("k", ttl=1, extend=True, replace=True)),
            {"de": {"id": "k", "ttl": 1000, "extend": True, "replace": True}},
        ),
        (
            NewJob(1, parent=Parent("R", "r", on_failure="ignore")),
            {"parent": {"id": "R", "queue": "bull:r"}, "idof": True},
        ),
        (NewJob(1, extra={"keepLogs": 3, "stackTraceLimit": 1}), {"kl": 3, "stackTraceLimit": 1}),
    ],
)
def test_options_are_written_with_bullmqs_names(new: NewJob, opts: dict[str, Any]) -> None:
    delay = codec.milliseconds(new.delay_at(0))
    assert json.loads(codec.encode_opts(new, delay, "bull")) == {"attempts": 0, **opts}


def test_a_childs_record_names_its_parent_and_its_flag() -> None:
    key, record = codec.parent_fields(Parent("R", "r", on_failure="fail"), "bull")
    assert (key, json.loads(record)) == ("bull:r:R", {"id": "R", "queueKey": "bull:r", "fpof": True})


@pytest.mark.parametrize(
    ("raw", "options"),
    [
        (b"{}", DEFAULTS),
        (b"not json", DEFAULTS),
        (b"[1]", DEFAULTS),
        (b'{"attempts":"3","backoff":true,"removeOnComplete":"x","stackTraceLimit":[]}', DEFAULTS),
        (b'{"backoff":500}', StoredOptions(backoff=StoredBackoff("fixed", 500))),
        (
            b'{"removeOnComplete":true,"removeOnFail":false}',
            StoredOptions(keep_completed=("0", ""), keep_failed=("", "")),
        ),
        (
            b'{"removeOnComplete":-1,"removeOnFail":{"age":1.5}}',
            StoredOptions(keep_completed=("-1", ""), keep_failed=("", "1.5")),
        ),
        (b'{"stackTraceLimit":0,"lifo":true}', StoredOptions(stack_limit=0, lifo=True)),
    ],
)
def test_options_of_any_producer_are_read(raw: bytes, options: StoredOptions) -> None:
    assert read_options(raw) == options


def test_a_workers_rule_of_keeping_has_the_same_form() -> None:
    assert kept(Keep(5, timedelta(minutes=1))) == ("5", "60")
    assert kept(Keep()) == ("", "")


def failed(made: int, **outcome: Any) -> Failed:
    return Failed(Claim(Job("1", "q", "n", None, attempts_made=made), "t"), "boom", **outcome)


@pytest.mark.parametrize(
    ("attempts", "made", "backoff", "delay"),
    [
        (0, 0, None, None),
        (1, 0, None, None),
        (3, 0, None, 0),
        (3, 2, None, None),
        (3, 0, StoredBackoff("fixed", 250), 250),
        (9, 3, StoredBackoff("fixed", 250), 250),
        (9, 0, StoredBackoff("exponential", 200), 200),
        (9, 3, StoredBackoff("exponential", 200), 1600),
        (5000, 4000, StoredBackoff("exponential", 200), 3_600_000),
        (3, 0, StoredBackoff("fixed", -1), None),
        (3, 0, StoredBackoff("fixed", 1000, jitter=0.5), 750),
    ],
)
def test_a_failed_run_is_followed_by_bullmqs_wait(
    attempts: int, made: int, backoff: StoredBackoff | None, delay: int | None
) -> None:
    options = StoredOptions(attempts=attempts, backoff=backoff)
    decision = decide(failed(made), options, ConsumerSettings("q", "w"), rng=lambda: 0.5)
    waited = None if decision.delay is None else milliseconds(decision.delay)
    assert (waited, decision.reason) == (delay, "boom")


def test_an_unrecoverable_failure_is_final() -> None:
    options = StoredOptions(attempts=5)
    assert decide(failed(0, final=True), options, ConsumerSettings("q", "w")).delay is None


def test_a_handlers_own_delay_goes_before_the_backoff() -> None:
    options = StoredOptions(attempts=5, backoff=StoredBackoff("fixed", 1))
    assert decide(failed(0, delay=2.5), options, ConsumerSettings("q", "w")).delay == 2.5
