"""Queues full of jobs to be moved, and what an independent reader finds in a queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from jobwire import NewJob
from jobwire.sync import Queue

SOON = datetime(2031, 5, 6, 7, 8, 9, 123_000, UTC)
PRIORITIES = {
    "bullmq": (0, 7, 2, 0, 2_000_000),
    "pgboss": (0, 5, -3, 12, 0),
    "bridgemq": (5, 9, 1, 5, 7),
    "monque": (None,),
}


@dataclass(frozen=True)
class Seen:
    """A queue as an independent reader sees it: data of the jobs that are ready, in their order; due times in ms."""

    ready: list[Any]
    due: dict[str, int]


def payload(number: int) -> dict[str, Any]:
    return {"n": number, "to": f"zoë-{number}@例え.jp", "text": 'a"b\\c\n🦊' if number % 3 else "", "rate": number / 8}


def samples(protocol: str, count: int) -> list[NewJob]:
    """Jobs with the protocol's priorities in turn; every fifth is due later, each at a time of its own."""
    choice = PRIORITIES[protocol]
    return [
        NewJob(
            payload(number),
            priority=choice[number % len(choice)],
            run_at=SOON + timedelta(milliseconds=1234 * number) if number % 5 == 4 else None,
        )
        for number in range(count)
    ]


def filled(url: str, queue: str, jobs: Iterable[NewJob]) -> None:
    with Queue(queue, url) as there:
        there.add_many(list(jobs))


def seen(url: str, queue: str) -> Seen:
    with Queue(queue, url) as there:
        ready = [job.data for job in _all(there, "waiting")]
        late = _all(there, "delayed")
        due = {str(job.data["n"]): round(job.run_at.timestamp() * 1000) for job in late}
        assert len(due) == len(late)
        return Seen(ready, due)


def _all(queue: Any, state: str) -> list[Any]:
    found: list[Any] = []
    cursor = None
    while True:
        page = queue.jobs(state=state, limit=500, cursor=cursor)
        found += page
        cursor = page.cursor
        if cursor is None:
            return found
