"""Gold tables from literal runs and jobs."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from jobwire.pipeline.history import gold
from jobwire.pipeline.history.silver_attempts import attempts as silver_attempts
from jobwire.pipeline.history.silver_jobs import silver_jobs
from jobwire.pipeline.lake.schemas import FAILURES_DAILY, RETRIES, THROUGHPUT_HOURLY, WORKERS_HOURLY
from pipeline.literal_rows import (
    BULLMQ,
    NOON,
    PGBOSS,
    assert_rows,
    at,
    attempt,
    attempts,
    job,
    jobs,
    only,
    silver_event,
    silver_events,
    snapshot,
    snapshots,
    values,
)

pytestmark = pytest.mark.xdist_group("spark")

WELCOME = {**BULLMQ, "name": "welcome"}
NOTHING = {"added": 0, "started": 0, "completed": 0, "failed": 0, "stalled": 0, "retried": 0}


def test_throughput_counts_each_thing_in_the_hour_in_which_it_happened(spark: Any) -> None:
    found = gold.throughput_hourly(
        jobs(
            spark,
            job("1", state="completed", finished_at=at(70), adding_reported=False),
            job("2", state="failed", finished_at=at(130), adding_reported=False),
            job("3", name="goodbye", adding_reported=True) | PGBOSS,
        ),
        attempts(
            spark,
            attempt(10, 20, outcome="failed"),
            attempt(30, 70, attempt=2),
            attempt(50, 55, outcome="stalled", job_id="2"),
            attempt(None, 130, outcome="failed", job_id="2", gave_up=True),
            attempt(None, 65),
        ),
        silver_events(spark),
    )

    assert_rows(
        found,
        THROUGHPUT_HOURLY,
        {**WELCOME, "hour": NOON, **NOTHING, "added": 2, "started": 3, "stalled": 1, "retried": 1},
        {**WELCOME, "hour": at(60), **NOTHING, "completed": 2},
        {**WELCOME, "hour": at(120), **NOTHING, "failed": 1},
        {**PGBOSS, "name": "goodbye", "hour": NOON, **NOTHING, "added": 1},
    )


def test_every_life_of_an_id_and_every_failure_for_good_is_counted(spark: Any) -> None:
    def life(minute: int, end: str, job: str = "daily") -> list[dict[str, Any]]:
        return [
            silver_event(0, "added", minute, job, name="welcome"),
            silver_event(0, "started", minute + 1, job),
            silver_event(0, end, minute + 2, job),
        ]

    by_hand = [
        *life(0, "failed", "again"),
        silver_event(0, "retried", 60, "again"),
        *life(60, "completed", "again")[1:],
    ]
    told = silver_events(
        spark,
        *life(0, "failed"),
        *life(60, "completed"),
        *life(120, "completed"),
        *by_hand,
        silver_event(0, "added", 0, "unseen", name="welcome"),  # never ran, and was removed before the next one
        silver_event(0, "added", 120, "unseen", name="welcome"),
        silver_event(0, "added", 0, "trimmed", name="welcome"),
    )
    seen = snapshots(
        spark,
        snapshot(130, "daily", state="completed", created_at=at(120), started_at=at(121), finished_at=at(122)),
        snapshot(130, "trimmed", created_at=at(120)),  # another job than the one of which there is an event
        snapshot(130, "failed", state="failed", created_at=at(60), finished_at=at(62)),
    )
    kept = silver_jobs(seen, told).persist()

    found = gold.throughput_hourly(kept, silver_attempts(told, kept), told)

    assert values(found, "hour", "added", "started", "completed", "failed") == [
        (NOON, 4, 2, 0, 2),
        (at(60), 2, 2, 2, 1),
        (at(120), 3, 1, 1, 0),
    ]


def _runs(*waits: int, minute: float = 0) -> list[dict[str, Any]]:
    return [attempt(minute, None, wait_ms=wait, run_ms=2 * wait) for wait in waits]


def test_latency_of_short_times_is_exact(spark: Any) -> None:
    found = gold.latency_hourly(attempts(spark, *_runs(*range(1, 41))))

    assert only(found, "runs", "wait_p50", "wait_p95", "wait_p99", "run_p50") == (40, 20, 38, 40, 40)


def test_latency_of_any_times_is_right_to_one_per_cent(spark: Any) -> None:
    drawn = random.Random(7)
    waits = sorted(int(drawn.lognormvariate(6, 2)) + 1 for _ in range(2_000))

    found = gold.latency_hourly(attempts(spark, *_runs(*waits)))

    exact = [waits[round(len(waits) * share) - 1] for share in (0.50, 0.95, 0.99)]
    assert only(found, "wait_p50", "wait_p95", "wait_p99") == pytest.approx(exact, rel=0.0101, abs=0.5)


def test_the_same_runs_in_another_order_give_the_same_sketch(spark: Any) -> None:
    runs = _runs(*(random.Random(3).randrange(1, 10**6) for _ in range(3_000)))

    there = gold.latency_hourly(attempts(spark, *runs))
    back = gold.latency_hourly(attempts(spark, *reversed(runs)).repartition(5))

    assert values(there, *there.columns) == values(back, *back.columns)


def test_runs_without_an_end_count_with_their_wait_alone(spark: Any) -> None:
    rows = attempts(spark, attempt(0, None, wait_ms=5), attempt(0, 1, wait_ms=7, run_ms=60_000), attempt(None, 9))

    assert only(gold.latency_hourly(rows), "runs", "wait_p99", "run_p50") == (2, 7, pytest.approx(60_000, rel=0.01))


def test_no_wait_at_all_is_zero(spark: Any) -> None:
    found = gold.latency_hourly(attempts(spark, attempt(0, None, wait_ms=0)))

    assert only(found, "wait_p50", "run_p50", "wait_sketch", "run_sketch") == (0, None, '{"-1":1}', None)


def test_hours_merge_into_the_day_that_would_have_been_measured_at_once(spark: Any) -> None:
    early, late = range(1, 400, 7), range(50, 90_000, 321)
    hours = gold.latency_hourly(attempts(spark, *_runs(*early), *_runs(*late, minute=120)))
    at_once = gold.latency_hourly(attempts(spark, *_runs(*early, *late)))

    merged = gold.merge_latency(hours, "day")

    measured = [name for name in merged.columns if name != "hour"]
    assert hours.count() == 2
    assert values(merged, *measured) == values(at_once, *measured)
    assert only(merged, "hour") == (NOON.replace(hour=0),)


def test_days_are_merged_apart_and_all_of_them_into_one(spark: Any) -> None:
    hours = gold.latency_hourly(attempts(spark, *_runs(1, 2), *_runs(3, minute=60 * 24)))

    assert values(gold.merge_latency(hours, "day"), "runs") == [(1,), (2,)]
    assert only(gold.merge_latency(hours, "all"), "hour", "runs", "wait_p99") == (NOON, 3, 3)


def test_failures_are_counted_by_class_and_day_with_the_first_as_a_sample(spark: Any) -> None:
    down = {"outcome": "failed", "error_class": "ConnectionError"}
    found = gold.failures_daily(
        attempts(
            spark,
            attempt(0, 5, **down, error="ConnectionError: b", job_id="1", attempt=2),
            attempt(0, 3, **down, error="ConnectionError: a", job_id="1"),
            attempt(0, 9, **down, error="ConnectionError: c", job_id="2"),
            attempt(0, 60 * 24, **down, error="ConnectionError: d", job_id="2"),
            attempt(0, 4, outcome="stalled"),
            attempt(2, None, outcome="failed"),
            attempt(0, 1),
        )
    )

    day = NOON.date()
    assert_rows(
        found,
        FAILURES_DAILY,
        {
            **WELCOME,
            "day": day,
            "error_class": "ConnectionError",
            "failures": 3,
            "jobs": 2,
            "sample_error": "ConnectionError: a",
            "first_at": at(3),
            "last_at": at(9),
        },
        {
            **WELCOME,
            "day": day + timedelta(days=1),
            "error_class": "ConnectionError",
            "failures": 1,
            "jobs": 1,
            "sample_error": "ConnectionError: d",
            "first_at": at(60 * 24),
            "last_at": at(60 * 24),
        },
        {
            **WELCOME,
            "day": day,
            "error_class": "stalled",
            "failures": 1,
            "jobs": 1,
            "first_at": at(4),
            "last_at": at(4),
        },
        {
            **WELCOME,
            "day": day,
            "error_class": "(no error told)",
            "failures": 1,
            "jobs": 1,
            "first_at": at(2),
            "last_at": at(2),
        },
    )


def test_a_run_over_several_hours_is_split_at_their_strokes(spark: Any) -> None:
    found = gold.workers_hourly(
        attempts(spark, attempt(45, 150, worker="w1"), attempt(50, 60, worker="w1"), attempt(0, 30, worker="w2"))
    )

    minute = 60_000
    w1, w2 = {**BULLMQ, "worker": "w1"}, {**BULLMQ, "worker": "w2"}
    assert_rows(
        found,
        WORKERS_HOURLY,
        {**w1, "hour": NOON, "runs": 2, "busy_ms": 25 * minute, "utilisation": 25 / 60},
        {**w1, "hour": at(60), "runs": 1, "busy_ms": 60 * minute, "utilisation": 1.0},
        {**w1, "hour": at(120), "runs": 1, "busy_ms": 30 * minute, "utilisation": 0.5},
        {**w2, "hour": NOON, "runs": 1, "busy_ms": 30 * minute, "utilisation": 0.5},
    )


def test_runs_of_unknown_length_keep_no_worker_busy_and_those_of_unknown_workers_are_counted(spark: Any) -> None:
    unknown = [attempt(0, None, worker="w1"), attempt(None, 5, worker="w1"), attempt(9, 5, worker="w1")]
    rows = [*unknown, attempt(0, 5), attempt(30, 200, worker="w2", outcome="stalled")]

    assert_rows(
        gold.workers_hourly(attempts(spark, *rows)),
        WORKERS_HOURLY,
        {**BULLMQ, "worker": None, "hour": NOON, "runs": 1, "busy_ms": 5 * 60_000, "utilisation": 5 / 60},
        {**BULLMQ, "worker": "w2", "hour": NOON, "runs": 1, "busy_ms": 0, "utilisation": 0.0},
    )


def test_retries_tell_what_each_further_run_bought(spark: Any) -> None:
    done = [job(str(number), state="completed", attempts_made=1) for number in range(6)]
    second = [job(f"b{number}", state="completed", attempts_made=2) for number in range(2)]
    lost = [job("c", state="failed", attempts_made=3), job("d", state="failed", attempts_made=2)]
    waiting = [job("e", attempts_made=1)]

    found = gold.retries(gold.run_tallies(jobs(spark, *done, *second, *lost, *waiting)))

    assert_rows(
        found,
        RETRIES,
        {**WELCOME, "attempts": 1, "jobs": 6, "succeeded": 6, "share": 0.75},
        {**WELCOME, "attempts": 2, "jobs": 3, "succeeded": 2, "share": 0.25},
        {**WELCOME, "attempts": 3, "jobs": 1, "succeeded": 0, "share": 0.0},
    )


def test_where_nothing_succeeded_there_is_no_share(spark: Any) -> None:
    failed = gold.run_tallies(jobs(spark, job(state="failed", attempts_made=1)))
    assert only(gold.retries(failed), "succeeded", "share") == (0, None)
