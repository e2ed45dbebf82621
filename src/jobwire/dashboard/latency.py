"""Waiting and running times of a queue, by the jobs that completed last."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobwire.model import Job

SAMPLE = 20
"""Completed jobs of a queue that are read."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Medians in seconds. None if the store does not have the times."""

    wait: float | None
    run: float | None


def latency_of(jobs: Sequence[Job], *, delays: bool) -> Latency:
    """Returns the medians. Waits are those of jobs that ran once: stores keep no earlier start. Not every store keeps
    the time at which a delayed job was due, so if the queue has delays, jobs without that time have no known wait."""
    waits = [
        (job.started_at - _due(job, job.created_at)).total_seconds()
        for job in jobs
        if job.started_at is not None
        and job.created_at is not None
        and job.attempts_made <= 1
        and not (delays and job.run_at is None)
    ]
    runs = [
        (job.finished_at - job.started_at).total_seconds()
        for job in jobs
        if job.started_at is not None and job.finished_at is not None
    ]
    return Latency(_median(waits), _median(runs))


def _due(job: Job, created_at: datetime) -> datetime:
    return created_at if job.run_at is None else max(job.run_at, created_at)


def _median(seconds: Sequence[float]) -> float | None:
    known = [one for one in seconds if one >= 0]
    return statistics.median(known) if known else None
