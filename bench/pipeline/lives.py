"""The lives of jobs that never were: what happens to the n-th job of a week, and when.

All is computed from the job's number with whole numbers, so that Python and Spark tell the same story. Of twenty jobs
sixteen run once and complete, two are retried and complete, one is retried and fails for good, one is delayed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

BEGIN_MS = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp() * 1000)
SPAN_MS = 7 * 24 * 3_600_000
DELAY_MS = 60_000
TURN = 20
NAMES = ("welcome", "invoice", "digest", "reminder", "receipt")
ERRORS = (
    "ConnectionError: 10.0.0.7:25 refused the connection",
    "TimeoutError: no answer within 30 s",
    "Error: mailbox of user 17 is full",
)


class Draw(NamedTuple):
    """A duration: a number below `values`, squared, divided by `shrink`. Short ones come more often."""

    stride: int
    shift: int
    values: int
    shrink: int


DRAWS = {"wait": Draw(7_919, 104_729, 1_000, 500), "run": Draw(15_485_863, 32_452_843, 997, 400)}
"""Waits of up to 2 s, runs of up to 2.5 s."""
KEPT_OF = 5
"""One of so many turns of twenty jobs is still in the store when the snapshot is taken."""


class Step(NamedTuple):
    """An event of a life: its kind, what has to pass before it, and its fields as pairs. `$name`, `$due` and `$error`
    stand for the job's own."""

    kind: str
    after: str | None
    fields: tuple[tuple[str, str], ...] = ()


_ADDED = Step("added", None, (("name", "$name"),))
_WAITING = Step("waiting", None)
_AGAIN = Step("waiting", "run 0", (("prev", "active"),))
_RETURNED = (("returnvalue", '{"sent":true}'), ("prev", "active"))
_REASON = (("failedReason", "$error"), ("prev", "active"))


def _active(after: str) -> Step:
    return Step("active", after, (("prev", "waiting"),))


ONCE = (_ADDED, _WAITING, _active("wait 0"), Step("completed", "run 0", _RETURNED))
RETRIED = (_ADDED, _WAITING, _active("wait 0"), _AGAIN, _active("wait 1"), Step("completed", "run 1", _RETURNED))
FAILED = (_ADDED, _WAITING, _active("wait 0"), _AGAIN, _active("wait 1"), Step("failed", "run 1", _REASON))
DELAYED = (
    _ADDED,
    Step("delayed", None, (("delay", "$due"),)),
    Step("waiting", "delay", (("prev", "delayed"),)),
    _active("wait 0"),
    Step("completed", "run 0", _RETURNED),
)
LIVES = (ONCE,) * 16 + (RETRIED,) * 2 + (FAILED, DELAYED)
"""The life of job n is the one at n modulo twenty."""
EVENTS_PER_TURN = sum(map(len, LIVES))


def jobs_for(events: int) -> int:
    """How many jobs have about so many events: whole turns of twenty, at least one."""
    return max(1, round(events / EVENTS_PER_TURN)) * TURN


def events_of(jobs: int) -> int:
    return jobs // TURN * EVENTS_PER_TURN


@dataclass(frozen=True)
class Told:
    """One event as a stream holds it."""

    id: str
    job: int
    kind: str
    fields: tuple[tuple[str, str], ...]


def told(jobs: int) -> Iterator[Told]:
    """All events in the order of their ids."""
    pending: list[tuple[int, int, int, Step]] = []
    for job in range(jobs):
        now = begins(job, jobs)
        while pending and pending[0][0] < now:
            yield _told(heapq.heappop(pending), jobs)
        for number, step in enumerate(LIVES[job % TURN]):
            now += passes(job, step.after)
            heapq.heappush(pending, (now, job * 10 + number, job, step))
    while pending:
        yield _told(heapq.heappop(pending), jobs)


def begins(job: Any, jobs: int) -> Any:
    """When the job is added: a number of milliseconds, or a column if the job is one."""
    return job * (SPAN_MS // jobs) + BEGIN_MS


def passes(job: int, what: str | None) -> int:
    """Milliseconds before a step."""
    if what is None or what == "delay":
        return DELAY_MS if what else 0
    kind, _, number = what.partition(" ")
    draw = DRAWS[kind]
    drawn = (job * draw.stride + int(number) * draw.shift) % draw.values
    return drawn * drawn // draw.shrink


def _told(event: tuple[int, int, int, Step], jobs: int) -> Told:
    ms, number, job, step = event
    turn = job // TURN
    own = {
        "$name": NAMES[turn % len(NAMES)],
        "$error": ERRORS[turn % len(ERRORS)],
        "$due": str(begins(job, jobs) + DELAY_MS),
    }
    fields = tuple((name, own.get(value, value)) for name, value in step.fields)
    return Told(f"{ms}-{number}", job, step.kind, fields)
