"""Kinds of jobs that the producers add, by their number, and the state in which each kind must end."""

from __future__ import annotations

from dataclasses import dataclass

ATTEMPTS = 3
"""Runs that a job may have whose handler raises."""
DELAY = 0.3


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job: how its handler behaves, and how the job ends."""

    name: str
    ends: str = "completed"
    delay: float | None = None


PLAIN = JobKind("plain")
DELAYED = JobKind("delayed", delay=DELAY)
FLAKY = JobKind("flaky")
"""Raises in its first run."""
POISON = JobKind("poison", ends="failed")
"""Raises in every run."""


def kind_of(n: int) -> JobKind:
    """Returns the kind of the job with this number."""
    if n % 40 == 7:
        return POISON
    if n % 20 == 3:
        return FLAKY
    return DELAYED if n % 10 == 1 else PLAIN
