"""Quarantine, gaps and checks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobwire.pipeline.history import quality
from jobwire.pipeline.history import silver_events as of_events
from jobwire.pipeline.history import silver_jobs as of_jobs
from jobwire.pipeline.lake.schemas import GAPS, QUARANTINE
from pipeline.literal_rows import (
    BULLMQ,
    NOON,
    PGBOSS,
    assert_rows,
    at,
    attempt,
    attempts,
    bronze_events,
    event,
    frame,
    job,
    jobs,
    silver_event,
    silver_events,
    snapshot,
    snapshots,
    values,
)

pytestmark = pytest.mark.xdist_group("spark")


def test_whatever_silver_leaves_out_is_in_quarantine_with_its_reason(spark: Any) -> None:
    events = bronze_events(
        spark,
        event(0, "added", 0),
        event(1, "active", 0) | {"malformed": "data is not UTF-8"},
        event(2, "active", 0) | {"at": None},
        event(3, "", 0),
    )
    seen = snapshots(spark, snapshot(1), snapshot(1, "8", malformed="data is no JSON"), snapshot(1, "9", state=None))

    found = quality.quarantine(events, seen)

    assert values(found, "source", "reason") == [
        ("events", "data is not UTF-8"),
        ("events", "the event has no kind"),
        ("events", "the event has no time"),
        ("jobs", "data is no JSON"),
        ("jobs", "the job has no state"),
    ]
    kept = of_events.silver_events(events).count() + of_jobs.silver_jobs(seen, silver_events(spark)).count()
    assert found.count() + kept == events.count() + seen.count()


def test_a_job_that_every_snapshot_finds_malformed_is_quarantined_once_with_its_whole_record(spark: Any) -> None:
    broken = {"malformed": "data is no JSON", "raw": '{"data":"{oops"}'}

    found = quality.quarantine(bronze_events(spark), snapshots(spark, snapshot(5, **broken), snapshot(1, **broken)))

    row = {**BULLMQ, "source": "jobs", "id": "7", "reason": "data is no JSON", "seen_at": at(1), "day": NOON.date()}
    assert_rows(found.drop("record"), QUARANTINE.without(["record"]), row)
    assert json.loads(found.first()["record"]) == {"name": "welcome", "state": "waiting", "raw": '{"data":"{oops"}'}


def test_gaps_have_their_bounds(spark: Any) -> None:
    found = quality.gaps(
        silver_events(
            spark,
            silver_event(0, "gap", 0, job=None, after="1-0", before="9-0", lost=41),
            silver_event(1, "gap", 1, job=None, after="10-0", before="20-0", lost=None),
            silver_event(2, "added", 1),
        )
    )

    assert_rows(
        found,
        GAPS,
        {**BULLMQ, "after": "1-0", "before": "9-0", "lost": 41, "noticed_at": NOON},
        {**BULLMQ, "after": "10-0", "before": "20-0", "noticed_at": at(1)},
    )


def test_checks_say_what_someone_should_look_at(spark: Any) -> None:
    bronze = bronze_events(spark, event(0, "added", 0), event(0, "added", 0), event(0, "active", 1) | PGBOSS)

    counted = quality.tallies(
        bronze,
        silver_events(spark, silver_event(0, "added", 0), silver_event(0, "started", 1) | PGBOSS),
        jobs(
            spark,
            job("1", started_at=at(5), finished_at=at(4)),
            job("2", created_at=None),
            job("3", started_at=at(4), finished_at=at(5)),
        ),
        attempts(
            spark,
            attempt(1, None, ready_at=at(2), worker="w1", forgotten=2),
            attempt(3, 4, ready_at=at(2), forgotten=1),
        ),
    )
    aside = frame(spark, QUARANTINE, [{**BULLMQ, "source": "events", "id": "1", "reason": "no time"}])
    found = quality.checks(counted, aside)

    assert values(found.where("store like 'bullmq%'"), "check_name", "value", "ok") == [
        ("attempts", 2, True),
        ("duplicate events", 1, True),
        ("events", 1, True),
        ("finished before started", 1, False),
        ("forgotten runs", 3, False),
        ("gaps", 0, True),
        ("jobs", 3, True),
        ("jobs of unknown beginning", 1, False),
        ("malformed rows", 1, False),
        ("open attempts", 1, True),
        ("runs of unknown workers", 1, True),
        ("started before ready", 1, False),
    ]
    assert values(found.where("store like 'pgboss%'"), "check_name", "value") == [
        ("duplicate events", 0),
        ("events", 1),
        ("gaps", 0),
    ]
    assert found.where("note is null").count() == 0
