"""Conditions that jobs are chosen by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from jobwire.model import Job, State


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that a job must meet, all of them. Without any, every job does."""

    name: str | None = None
    error: str | None = None
    older_than: float | None = None
    younger_than: float | None = None

    def __bool__(self) -> bool:
        return any(one is not None for one in (self.name, self.error, self.older_than, self.younger_than))

    def match(self, job: Job, now: datetime | None = None) -> bool:
        if self.name is not None and job.name != self.name:
            return False
        if self.error is not None and self.error.casefold() not in error_text(job).casefold():
            return False
        if self.older_than is None and self.younger_than is None:
            return True
        since = since_when(job)
        if since is None:
            return False
        age = ((now or datetime.now(UTC)) - since).total_seconds()
        return (self.older_than is None or age > self.older_than) and (
            self.younger_than is None or age < self.younger_than
        )


def error_text(job: Job) -> str:
    """Returns the error with the first and the last line of its stack, one of which names the class of the error."""
    lines = job.stacktrace[-1].strip().splitlines() if job.stacktrace else []
    return "\n".join((job.error or "", *lines[:1], *lines[-1:]))


def since_when(job: Job) -> datetime | None:
    """Returns since when the job has been in its state: its end, its start, or else the time of its add."""
    if job.state.finished:
        return job.finished_at or job.created_at
    return (job.started_at or job.created_at) if job.state is State.ACTIVE else job.created_at
