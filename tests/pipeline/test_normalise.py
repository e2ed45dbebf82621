"""Events in one vocabulary, jobs in one row each."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from jobwire.pipeline.history import silver_events as of_events
from jobwire.pipeline.history import silver_jobs as of_jobs
from jobwire.pipeline.lake.schemas import SILVER_EVENTS, SILVER_JOBS
from pipeline.literal_rows import (
    BULLMQ,
    NOON,
    PGBOSS,
    assert_rows,
    at,
    bronze_events,
    event,
    ms,
    only,
    silver_event,
    silver_events,
    snapshot,
    snapshots,
    values,
)

pytestmark = pytest.mark.xdist_group("spark")


def test_an_event_keeps_its_words_and_gets_ours(spark: Any) -> None:
    found = of_events.silver_events(bronze_events(spark, event(0, "active", 3, prev="waiting")))

    assert_rows(
        found,
        SILVER_EVENTS,
        {
            **BULLMQ,
            "id": f"{ms(at(3))}-0",
            "kind": "started",
            "native_kind": "active",
            "job_id": "7",
            "happened_at": at(3),
            "data": '{"prev": "waiting"}',
            "day": NOON.date(),
        },
    )


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (
            "bullmq+redis://a",
            "added=added waiting=waiting delayed=delayed active=started progress=progress completed=completed"
            " failed=failed stalled=stalled removed=removed paused=paused resumed=resumed gap=gap drained=other"
            " waiting-children=other retries-exhausted=other duplicated=other my-own-event=other",
        ),
        (
            "pgboss+postgresql://a",
            "created=added active=started completed=completed failed=failed cancelled=cancelled retry=retried"
            " stalled=stalled",
        ),
        (
            "monque+mongodb://a",
            "added=added waiting=waiting delayed=delayed active=started completed=completed failed=failed"
            " cancelled=cancelled removed=removed rescheduled=delayed progress=progress",
        ),
        (
            "bridgemq+redis://a",
            "created=added claimed=started completed=completed failed=failed retried=retried dead=failed",
        ),
    ],
    ids=lambda value: value.partition("+")[0] if "+" in value else "",
)
def test_every_protocol_speaks_one_vocabulary(spark: Any, store: str, words: str) -> None:
    pairs = [tuple(word.split("=")) for word in words.split()]
    rows = [event(number, native, 0) | {"store": store} for number, (native, _) in enumerate(pairs)]

    found = of_events.silver_events(bronze_events(spark, *rows))

    assert values(found, "native_kind", "kind") == sorted(pairs)


@pytest.mark.parametrize(
    ("prev", "kind"), [("active", "retried"), ("failed", "retried"), ("delayed", "waiting"), ("completed", "retried")]
)
def test_a_bullmq_job_that_waits_again_after_a_run_is_retried(spark: Any, prev: str, kind: str) -> None:
    found = of_events.silver_events(bronze_events(spark, event(0, "waiting", 0, prev=prev)))

    assert only(found, "kind") == (kind,)


def test_an_event_that_was_read_twice_is_kept_once_as_it_was_first_read(spark: Any) -> None:
    first, again = event(0, "active", 3, worker="a"), event(0, "active", 3, worker="b")
    again["ingested_at"] = at(60)

    found = of_events.silver_events(bronze_events(spark, again, first, first))

    assert only(found, "worker") == ("a",)


def test_events_of_two_queues_may_share_an_id(spark: Any) -> None:
    rows = [event(0, "active", 3), event(0, "active", 3) | {"queue": "sms"}, event(0, "active", 3) | PGBOSS]

    assert of_events.silver_events(bronze_events(spark, *rows)).count() == 3


def test_malformed_events_are_left_out(spark: Any) -> None:
    flawed = [
        event(1, "active", 3) | {"malformed": "not UTF-8"},
        event(2, "active", 3) | {"at": None},
        event(3, "active", 3) | {"kind": None},
        event(4, "active", 3) | {"id": None},
    ]

    assert of_events.silver_events(bronze_events(spark, *flawed)).count() == 0


def test_a_gap_has_the_time_at_which_it_was_found(spark: Any) -> None:
    gap = event(0, "gap", 0, job=None, after="1-0", before="9-0") | {"at": None, "ingested_at": at(5)}

    assert only(of_events.silver_events(bronze_events(spark, gap)), "kind", "happened_at") == ("gap", at(5))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"failedReason": "boom"}, "boom"),
        ({"error": "boom"}, "boom"),
        ({"error": "boom", "name": "TypeError"}, "TypeError: boom"),
        ({"error": "boom", "name": "Error"}, "boom"),
        ({"name": "welcome"}, None),
        ({}, None),
    ],
)
def test_the_error_is_pulled_out_of_the_data(spark: Any, data: dict[str, Any], error: str | None) -> None:
    assert only(of_events.silver_events(bronze_events(spark, event(0, "failed", 0, **data))), "error") == (error,)


def test_the_day_is_that_of_utc_whatever_the_sessions_time_zone(spark: Any) -> None:
    late = event(0, "added", 0) | {"at": NOON.replace(hour=23, minute=30)}
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        found = of_events.silver_events(bronze_events(spark, late))
        assert only(found, "day") == (NOON.date(),)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_job_is_as_it_was_last_seen(spark: Any) -> None:
    payload = '{"to":"zoë@example.com","campaign_id":"spring"}'
    seen = snapshots(
        spark,
        snapshot(1, state="waiting", payload=payload, created_at=NOON),
        snapshot(
            9,
            state="completed",
            payload=payload,
            created_at=NOON,
            attempts=3,
            attempts_made=1,
            result="{}",
            priority=4,
            parent="flows:1",
            run_at=at(1),
            started_at=at(2),
            finished_at=at(3),
            worker="w1",
        ),
    )

    found = of_jobs.silver_jobs(seen, silver_events(spark))

    assert_rows(
        found,
        SILVER_JOBS,
        {
            **BULLMQ,
            "id": "7",
            "name": "welcome",
            "state": "completed",
            "priority": 4,
            "attempts": 3,
            "attempts_made": 1,
            "payload": payload,
            "payload_hash": hashlib.sha256(payload.encode()).hexdigest(),
            "result": "{}",
            "parent": "flows:1",
            "campaign": "spring",
            "created_at": NOON,
            "scheduled_at": at(1),
            "started_at": at(2),
            "finished_at": at(3),
            "worker": "w1",
            "seen_at": at(9),
            "adding_reported": False,
            "day": NOON.date(),
        },
    )


def test_a_job_that_one_snapshot_saw_twice_is_where_it_got_to(spark: Any) -> None:
    seen = snapshots(spark, snapshot(1, state="completed"), snapshot(1, state="active"), snapshot(1, state="waiting"))

    assert only(of_jobs.silver_jobs(seen, silver_events(spark)), "state") == ("completed",)


def test_a_job_that_was_gone_before_it_was_seen_is_told_by_its_events(spark: Any) -> None:
    told = silver_events(
        spark,
        silver_event(0, "added", 0, name="welcome"),
        silver_event(1, "waiting", 0),
        silver_event(0, "started", 1, worker="w1"),
        silver_event(0, "retried", 2),
        silver_event(0, "started", 3, worker="w2"),
        silver_event(0, "completed", 4, returnvalue='{"ok":1}'),
        silver_event(1, "removed", 4),
    )

    found = of_jobs.silver_jobs(snapshots(spark), told)

    assert only(
        found,
        "id",
        "name",
        "state",
        "attempts_made",
        "result",
        "created_at",
        "started_at",
        "finished_at",
        "worker",
        "seen_at",
    ) == ("7", "welcome", "completed", 2, '{"ok":1}', NOON, at(3), at(4), "w2", None)


def test_a_job_has_the_worker_of_its_last_run_or_none(spark: Any) -> None:
    told = silver_events(
        spark,
        silver_event(0, "started", 1, worker="w1"),
        silver_event(0, "retried", 2, worker="w1"),
        silver_event(0, "started", 3),
        silver_event(0, "completed", 4),
    )

    assert only(of_jobs.silver_jobs(snapshots(spark), told), "worker") == (None,)


def test_events_after_the_snapshot_bring_a_job_further(spark: Any) -> None:
    seen = snapshots(spark, snapshot(1, payload="{}", created_at=NOON))
    told = silver_events(spark, silver_event(0, "started", 2), silver_event(0, "failed", 3, error="boom"))

    found = of_jobs.silver_jobs(seen, told)

    assert only(found, "state", "payload", "started_at", "finished_at", "error", "attempts_made") == (
        "failed",
        "{}",
        at(2),
        at(3),
        "boom",
        1,
    )


def test_events_before_the_snapshot_do_not_take_a_job_back(spark: Any) -> None:
    seen = snapshots(spark, snapshot(9, state="completed", started_at=at(2), finished_at=at(3), attempts_made=1))
    told = silver_events(spark, silver_event(0, "added", 0), silver_event(0, "started", 2))

    assert only(of_jobs.silver_jobs(seen, told), "state", "finished_at") == ("completed", at(3))


def test_a_job_that_finished_while_the_snapshot_was_taken_stays_finished(spark: Any) -> None:
    seen = snapshots(spark, snapshot(1, state="completed", started_at=at(2), finished_at=at(3)))
    told = silver_events(spark, silver_event(0, "started", 2))

    assert only(of_jobs.silver_jobs(seen, told), "state") == ("completed",)


def test_a_job_that_runs_again_has_no_finish(spark: Any) -> None:
    seen = snapshots(spark, snapshot(5, state="failed", finished_at=at(4), created_at=NOON))
    told = silver_events(spark, silver_event(0, "retried", 10), silver_event(0, "started", 11))

    assert only(of_jobs.silver_jobs(seen, told), "state", "finished_at") == ("active", None)


def test_an_id_that_is_used_again_is_the_newer_job(spark: Any) -> None:
    seen = snapshots(spark, snapshot(5, state="completed", finished_at=at(4), created_at=NOON, payload='{"old":1}'))
    told = silver_events(
        spark,
        silver_event(0, "added", 0, name="old"),
        silver_event(0, "completed", 4),
        silver_event(0, "added", 60, name="new"),
        silver_event(1, "waiting", 60),
    )

    found = of_jobs.silver_jobs(seen, told)

    assert only(found, "name", "state", "created_at", "payload") == ("new", "waiting", at(60), None)


def test_the_delay_of_a_job_that_was_never_seen_is_told_by_its_event(spark: Any) -> None:
    told = silver_events(spark, silver_event(0, "added", 0), silver_event(1, "delayed", 0, delay=str(ms(at(30)))))

    assert only(of_jobs.silver_jobs(snapshots(spark), told), "state", "scheduled_at") == ("delayed", at(30))


def test_malformed_jobs_are_left_out(spark: Any) -> None:
    seen = snapshots(spark, snapshot(1, malformed="data is no JSON"), snapshot(1, "8"))

    assert values(of_jobs.silver_jobs(seen, silver_events(spark)), "id") == [("8",)]


def test_events_without_a_job_make_none(spark: Any) -> None:
    told = silver_events(spark, silver_event(0, "paused", 0, job=None), silver_event(0, "gap", 0, job=None))

    assert of_jobs.silver_jobs(snapshots(spark), told).count() == 0


def test_the_day_of_a_job_without_a_beginning_is_that_of_its_first_sight(spark: Any) -> None:
    seen = snapshots(spark, snapshot(0), snapshot(60 * 24 * 3))

    assert only(of_jobs.silver_jobs(seen, silver_events(spark)), "created_at", "day") == (None, NOON.date())


def test_two_protocols_may_have_a_job_of_one_id(spark: Any) -> None:
    seen = snapshots(spark, snapshot(1), snapshot(1) | PGBOSS)

    assert of_jobs.silver_jobs(seen, silver_events(spark)).count() == 2
