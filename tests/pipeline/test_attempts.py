"""Runs rebuilt from events and jobs. Each story is one job of its own; all are told to Spark at once."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from jobwire.pipeline.history.silver_attempts import attempts
from jobwire.pipeline.history.silver_jobs import silver_jobs
from jobwire.pipeline.lake.schemas import ATTEMPTS
from pipeline.literal_rows import (
    BULLMQ,
    NOON,
    PGBOSS,
    assert_rows,
    at,
    job,
    jobs,
    ms,
    silver_event,
    silver_events,
    snapshot,
    snapshots,
    values,
)

MONQUE = {"store": "monque+mongodb://a", "queue": "emails"}
BRIDGEMQ = {"store": "bridgemq+redis://a", "queue": "emails"}

pytestmark = pytest.mark.xdist_group("spark")


class Story(NamedTuple):
    events: list[dict[str, Any]]
    job: dict[str, Any]
    runs: list[tuple[Any, ...]]
    """attempt, ready, started, ended (minutes after noon), outcome, error, worker"""
    store: dict[str, Any] = BULLMQ


def added(minute: float = 0) -> list[dict[str, Any]]:
    return [silver_event(0, "added", minute), silver_event(1, "waiting", minute)]


STORIES = {
    "a job that completes has one run": Story(
        [*added(), silver_event(0, "started", 1, worker="w1"), silver_event(0, "completed", 3)],
        {"state": "completed", "attempts_made": 1},
        [(1, 0, 1, 3, "completed", None, "w1")],
    ),
    "a retry makes two runs, the second ready when the first was handed back": Story(
        [
            *added(),
            silver_event(0, "started", 1),
            silver_event(0, "retried", 2),
            silver_event(0, "started", 4),
            silver_event(0, "completed", 5),
        ],
        {"state": "completed", "attempts_made": 2},
        [(1, 0, 1, 2, "failed", None, None), (2, 2, 4, 5, "completed", None, None)],
    ),
    "a run that waits for its backoff is ready when that is over": Story(
        [
            *added(),
            silver_event(0, "started", 1),
            silver_event(0, "delayed", 2, delay=str(ms(at(10)))),
            silver_event(0, "waiting", 11, prev="delayed"),
            silver_event(0, "started", 12),
            silver_event(0, "failed", 13, error="boom"),
        ],
        {"state": "failed", "attempts_made": 2, "error": "boom"},
        [(1, 0, 1, 2, "failed", "boom", None), (2, 10, 12, 13, "failed", "boom", None)],
    ),
    "a delayed job is ready when it is due": Story(
        [
            silver_event(0, "added", 0),
            silver_event(1, "delayed", 0, delay=str(ms(at(20)))),
            silver_event(0, "waiting", 21),
            silver_event(0, "started", 22),
            silver_event(0, "completed", 23),
        ],
        {"state": "completed", "attempts_made": 1, "scheduled_at": at(20)},
        [(1, 20, 22, 23, "completed", None, None)],
    ),
    "a promoted job is ready when it was promoted": Story(
        [
            silver_event(0, "added", 0),
            silver_event(1, "delayed", 0, delay=str(ms(at(20)))),
            silver_event(0, "waiting", 5),
            silver_event(0, "started", 6),
            silver_event(0, "completed", 7),
        ],
        {"state": "completed", "attempts_made": 1, "scheduled_at": at(20)},
        [(1, 5, 6, 7, "completed", None, None)],
    ),
    "a stalled run is called so, although it is handed back first": Story(
        [
            *added(),
            silver_event(0, "started", 1),
            silver_event(0, "retried", 9),
            silver_event(1, "stalled", 9),
            silver_event(0, "started", 10),
            silver_event(0, "completed", 11),
        ],
        {"state": "completed", "attempts_made": 1},
        [(1, 0, 1, 9, "stalled", None, None), (2, 9, 10, 11, "completed", None, None)],
    ),
    "a run that goes on is open": Story(
        [*added(), silver_event(0, "started", 1, worker="w1")],
        {"state": "active", "seen_at": at(5)},
        [(1, 0, 1, None, "open", None, "w1")],
    ),
    "a run without an end is closed by the finished job": Story(
        [*added(), silver_event(0, "started", 1)],
        {"state": "failed", "attempts_made": 1, "finished_at": at(4), "error": "boom", "worker": "w9"},
        [(1, 0, 1, 4, "failed", "boom", "w9")],
    ),
    "a run without an end has failed if its job waits again": Story(
        [*added(), silver_event(0, "started", 1)],
        {"state": "waiting", "seen_at": at(5)},
        [(1, 0, 1, None, "failed", None, None)],
    ),
    "a run without an end has failed if another one began": Story(
        [*added(), silver_event(0, "started", 1), silver_event(0, "started", 5), silver_event(0, "completed", 6)],
        {"state": "completed", "attempts_made": 2},
        [(1, 0, 1, None, "failed", None, None), (2, None, 5, 6, "completed", None, None)],
    ),
    "a cancelled run has failed by cancellation": Story(
        [*added(), silver_event(0, "started", 1), silver_event(0, "cancelled", 2)],
        {"state": "cancelled"},
        [(1, 0, 1, 2, "failed", "cancelled", None)],
    ),
    "a job that no event tells of has the run that it remembers": Story(
        [],
        {"state": "completed", "attempts_made": 3, "started_at": at(8), "finished_at": at(9), "worker": "w1"},
        [(3, None, 8, 9, "completed", None, "w1")],
    ),
    "a first run that no event tells of was ready when the job was due": Story(
        [],
        {"state": "completed", "attempts_made": 1, "scheduled_at": at(5), "started_at": at(8), "finished_at": at(9)},
        [(1, 5, 8, 9, "completed", None, None)],
    ),
    "a finish without a start is a run of which only the end is known": Story(
        [silver_event(0, "added", 0), silver_event(0, "completed", 9)],
        {"state": "completed", "finished_at": at(9)},
        [(1, 0, None, 9, "completed", None, None)],
    ),
    "a job that waits for its first run has none": Story(added(), {"state": "waiting"}, []),
    "a job cancelled before its first run has none": Story(added(), {"state": "cancelled", "finished_at": at(1)}, []),
    "a job that waits for its retry has failed once": Story(
        [],
        {"state": "delayed", "attempts_made": 1, "started_at": at(2), "error": "boom"},
        [(1, 0, 2, None, "failed", "boom", None)],
    ),
    "runs whose beginnings were trimmed are numbered from the job's count": Story(
        [silver_event(0, "retried", 4), silver_event(0, "started", 5), silver_event(0, "completed", 6)],
        {"state": "completed", "attempts_made": 4},
        [(4, 4, 5, 6, "completed", None, None)],
    ),
    "a run that hands over to its children is none": Story(
        [
            *added(),
            silver_event(0, "started", 1),
            silver_event(0, "other", 2, native_kind="waiting-children"),
            silver_event(0, "waiting", 5),
            silver_event(0, "started", 6),
            silver_event(0, "completed", 7),
        ],
        {"state": "completed", "attempts_made": 1},
        [(1, 5, 6, 7, "completed", None, None)],
    ),
    "a run that began before its job was ready has waited for nothing": Story(
        [silver_event(0, "added", 2), silver_event(0, "started", 1), silver_event(0, "completed", 3)],
        {"state": "completed", "attempts_made": 1, "created_at": at(2)},
        [(1, 2, 1, 3, "completed", None, None)],
        PGBOSS,
    ),
    "events of one moment are taken in the stream's order": Story(
        [
            silver_event(8, "added", 0),
            silver_event(9, "waiting", 0),
            silver_event(10, "started", 0),
            silver_event(11, "completed", 0),
        ],
        {"state": "completed", "attempts_made": 1},
        [(1, 0, 0, 0, "completed", None, None)],
    ),
    "a failed job that is retried by hand runs again": Story(
        [
            *added(),
            silver_event(0, "started", 1),
            silver_event(0, "failed", 2, error="boom"),
            silver_event(0, "retried", 60),
            silver_event(0, "started", 61),
            silver_event(0, "completed", 62),
        ],
        {"state": "completed", "attempts_made": 2},
        [(1, 0, 1, 2, "failed", "boom", None), (2, 60, 61, 62, "completed", None, None)],
    ),
    "a run that was handed back unharmed is none": Story(
        [
            *added(),
            silver_event(0, "started", 1),
            silver_event(0, "waiting", 2),
            silver_event(0, "started", 3),
            silver_event(0, "delayed", 4, due=at(10).isoformat()),
            silver_event(0, "started", 11),
            silver_event(0, "retried", 12, due=at(20).isoformat()),
            silver_event(0, "started", 21),
            silver_event(0, "stalled", 22),
            silver_event(0, "started", 23),
            silver_event(0, "completed", 24),
        ],
        {"state": "completed", "attempts_made": 1},
        [
            (1, 10, 11, 12, "failed", None, None),
            (2, 20, 21, 22, "stalled", None, None),
            (3, 22, 23, 24, "completed", None, None),
        ],
        MONQUE,
    ),
    "delayed runs that BullMQ has not counted were handed back": Story(
        [
            *added(),
            silver_event(0, "started", 1),
            silver_event(0, "delayed", 2, delay=str(ms(at(10)))),
            silver_event(0, "started", 11),
            silver_event(0, "delayed", 12, delay=str(ms(at(20)))),
            silver_event(0, "started", 21),
            silver_event(0, "failed", 22, error="boom"),
        ],
        {"state": "failed", "attempts_made": 2, "error": "boom", "run_errors": '{"1": "first", "2": "boom"}'},
        [(1, 10, 11, 12, "failed", "first", None), (2, 20, 21, 22, "failed", "boom", None)],
    ),
    "the only run of a job that is put off for now was handed back": Story(
        [*added(), silver_event(0, "started", 1), silver_event(0, "delayed", 2, delay=str(ms(at(10))))],
        {"state": "delayed", "attempts_made": 0, "seen_at": at(3)},
        [],
    ),
    "delayed runs of a job that was retried by hand have failed, as its count may be a new one": Story(
        [
            *added(),
            silver_event(0, "started", 1),
            silver_event(0, "delayed", 2, delay=str(ms(at(10)))),
            silver_event(0, "started", 11),
            silver_event(0, "failed", 12, error="boom"),
            silver_event(0, "retried", 20),
            silver_event(0, "started", 21),
            silver_event(0, "completed", 22),
        ],
        {"state": "completed", "attempts_made": 1},
        [
            (1, 0, 1, 2, "failed", None, None),
            (2, 10, 11, 12, "failed", "boom", None),
            (3, 20, 21, 22, "completed", None, None),
        ],
    ),
    "a run that was over before its job was due became ready at an unknown time": Story(
        [
            silver_event(0, "added", 0, id="7:0:created:0", delay=ms(at(60))),
            silver_event(0, "started", 1, id="7:1:claimed:1"),
            silver_event(0, "completed", 2, id="7:1:completed:2"),
        ],
        {"state": "completed", "attempts_made": 1, "scheduled_at": at(60)},
        [(1, None, 1, 2, "completed", None, None)],
        BRIDGEMQ,
    ),
    "a remembered run of an earlier job of the same id became ready at an unknown time": Story(
        [
            silver_event(0, "started", 1, retry_count=0, worker="w1"),
            silver_event(0, "retried", 2, retry_count=0, error="boom", worker="w1"),
            silver_event(0, "added", 9),
            silver_event(0, "started", 10, retry_count=0),
            silver_event(0, "completed", 11, retry_count=0),
        ],
        {"state": "completed", "attempts_made": 1, "created_at": at(9)},
        [(1, None, 1, 2, "failed", "boom", "w1"), (1, 9, 10, 11, "completed", None, None)],
        PGBOSS,
    ),
    "a BridgeMQ event has its run's number in its id": Story(
        [
            silver_event(0, "started", 1, id="7:3:claimed:1"),
            silver_event(0, "completed", 2, id="7:3:completed:2"),
        ],
        {"state": "completed", "attempts_made": 2},
        [(3, None, 1, 2, "completed", None, None)],
        BRIDGEMQ,
    ),
    "a run that was not charged has stalled, and the next one has a number of its own": Story(
        [
            silver_event(0, "added", 0, id="7:0:created:0"),
            silver_event(0, "started", 1, id="7:1:claimed:1"),
            silver_event(0, "started", 9, id="7:1:claimed:9"),
            silver_event(0, "retried", 10, id="7:1:retried:10"),
            silver_event(0, "started", 11, id="7:2:claimed:11"),
            silver_event(0, "completed", 12, id="7:2:completed:12"),
        ],
        {"state": "completed", "attempts_made": 2},
        [
            (1, 0, 1, None, "stalled", None, None),
            (2, None, 9, 10, "failed", None, None),
            (3, 10, 11, 12, "completed", None, None),
        ],
        BRIDGEMQ,
    ),
    "a run that began when the one before was put back comes after it": Story(
        [
            silver_event(0, "added", 0),
            silver_event(0, "started", 1, retry_count=0),
            silver_event(0, "retried", 2, retry_count=0, error="boom", start_after=at(2).isoformat()),
            silver_event(0, "started", 2, retry_count=1, ready=at(2).isoformat()),
            silver_event(0, "completed", 3, retry_count=1),
        ],
        {"state": "completed", "attempts_made": 2},
        [(1, 0, 1, 2, "failed", "boom", None), (2, 2, 2, 3, "completed", None, None)],
        PGBOSS,
    ),
    "a run after forgotten ones has waited since its own readiness and not since the job was added": Story(
        [
            silver_event(0, "added", 0, id="7:0:created:0"),
            silver_event(0, "started", 11, id="7:2:claimed:11", ready=ms(at(10))),
            silver_event(0, "retried", 12, id="7:2:retried:12"),
            silver_event(0, "started", 31, id="7:4:claimed:31"),
            silver_event(0, "completed", 32, id="7:4:completed:32"),
        ],
        {"state": "completed", "attempts_made": 4},
        [(2, 10, 11, 12, "failed", None, None), (4, None, 31, 32, "completed", None, None)],
        BRIDGEMQ,
    ),
    "a store that tells a run's number is believed": Story(
        [
            silver_event(0, "added", 0, start_after=at(3).isoformat()),
            silver_event(0, "started", 4, retry_count=0),
            silver_event(0, "started", 9, retry_count=2),
            silver_event(0, "completed", 10, retry_count=2),
        ],
        {"state": "completed", "attempts_made": 3, "scheduled_at": at(8)},
        [(1, 3, 4, None, "failed", None, None), (3, None, 9, 10, "completed", None, None)],
    ),
    "an id that is used again begins to count anew": Story(
        [
            *added(),
            silver_event(0, "started", 1),
            silver_event(0, "completed", 2),
            *added(60),
            silver_event(0, "started", 61),
            silver_event(0, "completed", 62),
        ],
        {"state": "completed", "attempts_made": 1, "created_at": at(60)},
        [(1, 0, 1, 2, "completed", None, None), (1, 60, 61, 62, "completed", None, None)],
    ),
}


@pytest.fixture(scope="module")
def rebuilt(spark: Any) -> dict[str, list[tuple[Any, ...]]]:
    told = [event | story.store | {"job_id": title} for title, story in STORIES.items() for event in story.events]
    kept = [job(title, **story.store, **story.job) for title, story in STORIES.items()]
    found = attempts(silver_events(spark, *told), jobs(spark, *kept))
    rows = values(
        found,
        "job_id",
        "started_at",
        "ended_at",
        "attempt",
        "ready_at",
        "outcome",
        "error",
        "worker",
        "wait_ms",
        "run_ms",
    )
    return {title: [row[1:] for row in rows if row[0] == title] for title in STORIES}


@pytest.mark.parametrize("title", STORIES)
def test_runs_are_rebuilt(title: str, rebuilt: dict[str, list[tuple[Any, ...]]]) -> None:
    def minute(number: float | None) -> Any:
        return None if number is None else at(number)

    def between(start: float | None, end: float | None) -> int | None:
        return None if start is None or end is None else max(0, round((end - start) * 60_000))

    expected = [
        (
            minute(started),
            minute(ended),
            number,
            minute(ready),
            outcome,
            error,
            worker,
            between(ready, started),
            None if outcome == "stalled" else between(started, ended),
        )
        for number, ready, started, ended, outcome, error, worker in STORIES[title].runs
    ]
    assert rebuilt[title] == expected


def test_a_run_has_all_its_columns(spark: Any) -> None:
    told = silver_events(
        spark,
        *added(),
        silver_event(0, "started", 1, worker="w1"),
        silver_event(0, "failed", 2, error="SMTPError: 550 no such user"),
    )

    found = attempts(told, jobs(spark, job(state="failed", attempts_made=1)))

    assert_rows(
        found,
        ATTEMPTS,
        {
            **BULLMQ,
            "job_id": "7",
            "name": "welcome",
            "attempt": 1,
            "ready_at": NOON,
            "started_at": at(1),
            "ended_at": at(2),
            "outcome": "failed",
            "error": "SMTPError: 550 no such user",
            "error_class": "SMTPError",
            "worker": "w1",
            "wait_ms": 60_000,
            "run_ms": 60_000,
            "gave_up": True,
            "forgotten": 0,
            "day": NOON.date(),
        },
    )


def test_runs_that_a_store_forgot_are_counted_before_the_next_known_one(spark: Any) -> None:
    def run(job: str, number: int, minute: int, end: str = "retried") -> list[dict[str, Any]]:
        named = {"started": "claimed", end: end}
        return [
            silver_event(0, kind, minute, job, id=f"{job}:{number}:{named[kind]}:{minute}") | BRIDGEMQ
            for kind in ("started", end)
        ]

    told = [
        *run("middle", 1, 1),
        *run("middle", 4, 2, "completed"),
        *run("again", 3, 1),
        *(row | MONQUE for row in [silver_event(0, "started", 5, "late"), silver_event(0, "retried", 6, "late")]),
    ]
    kept = [
        job("middle", state="completed", attempts_made=4) | BRIDGEMQ,
        job("again", state="delayed", attempts_made=3) | BRIDGEMQ,
        job("late", state="delayed", attempts_made=3, seen_at=at(9)) | MONQUE,
        job("alone", state="failed", attempts_made=5, finished_at=at(9)) | PGBOSS,
    ]

    found = attempts(silver_events(spark, *told), jobs(spark, *kept))

    assert values(found, "job_id", "attempt", "forgotten") == [
        ("again", 3, 2),
        ("alone", 5, 4),
        ("late", 3, 2),
        ("middle", 1, 0),
        ("middle", 4, 2),
    ]


def test_a_run_whose_message_is_that_of_its_job_has_the_class_of_its_job(spark: Any) -> None:
    told = [
        *added(),
        silver_event(0, "started", 1),
        silver_event(0, "retried", 2, error="3 of 4 left"),
        silver_event(0, "started", 3),
        silver_event(0, "retried", 4, error="gone"),
        silver_event(0, "started", 5),
        silver_event(0, "failed", 6, error="1 of 4 left"),
    ]
    kept = job(state="failed", attempts_made=3, error="1 of 4 left", error_class="NoStock")

    found = attempts(silver_events(spark, *told), jobs(spark, kept))

    assert values(found, "attempt", "error_class") == [(1, "NoStock"), (2, "gone"), (3, "NoStock")]


def test_jobs_of_one_id_in_two_stores_are_kept_apart(spark: Any) -> None:
    told = [silver_event(0, "started", 1), silver_event(0, "completed", 2)]
    other = [row | PGBOSS for row in told]

    found = attempts(silver_events(spark, *told, *other), jobs(spark, job(), job() | PGBOSS))

    assert values(found, "store", "attempt") == [(BULLMQ["store"], 1), (PGBOSS["store"], 1)]


def test_each_failed_run_has_the_error_of_its_own_stack(spark: Any) -> None:
    def runs(job: str, *ends: str) -> list[dict[str, Any]]:
        return [
            row
            for number, end in enumerate(ends)
            for row in (silver_event(0, "started", 10 * number, job), silver_event(1, end, 10 * number + 1, job))
        ]

    python = "Traceback (most recent call last):\n  File 'a.py', line 1\nTimeoutError: after 3 s"
    node = ["KeyError: 'to'\n    at a.js:1:2", "Error: user 17 is gone\n    at a.js:3:4"]
    told = silver_events(
        spark,
        *runs("all", "retried", "stalled", "retried", "failed"),
        *runs("limited", "retried", "retried", "completed"),
        *runs("late", "retried", "retried"),
    )
    seen = {
        "all": (3, "failed", [python, *node]),
        "limited": (3, "completed", node[:1]),
        "late": (1, "delayed", [python]),
    }
    kept = snapshots(
        spark,
        *(
            snapshot(
                60 if job != "late" else 5, job, attempts_made=made, state=state, error="gone", stacktrace=stacks[-1]
            )
            | {"raw": json.dumps({"stacktrace": json.dumps(stacks)} if len(stacks) > 1 else {})}
            for job, (made, state, stacks) in seen.items()
        ),
    )

    found = attempts(told, silver_jobs(kept, told)).where("outcome = 'failed'")

    assert values(found, "job_id", "attempt", "error", "error_class") == [
        ("all", 1, "TimeoutError: after 3 s", "TimeoutError"),
        ("all", 3, "KeyError: 'to'", "KeyError"),
        ("all", 4, "Error: user 17 is gone", "user # is gone"),
        ("late", 1, "TimeoutError: after 3 s", "TimeoutError"),
        ("late", 2, None, None),
        ("limited", 1, None, None),
        ("limited", 2, "KeyError: 'to'", "KeyError"),
    ]
