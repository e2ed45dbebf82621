"""Claims: jobs that a worker holds, how their runs ended, and what became of that in the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from jobwire.model import Job
from jobwire.record import record


@dataclass(slots=True, eq=False)
class Claim:
    """A job that is ours until its lease ends. The token tells this claim from any other of the same job."""

    job: Job
    token: str
    timeout: float | None = None
    doomed: str | None = None
    """Set when the job must fail with this reason without being run."""
    run_seconds: float = 0.0
    """Filled in by the engine when the handler has ended."""


@record
class Completed:
    claim: Claim
    result: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler failed. The protocol's rules decide between retry and failure unless `final`; `delay`, if given,
    is used instead of the job's own backoff."""

    claim: Claim
    error: str
    stack: str = ""
    final: bool = False
    delay: float | None = None
    kind: str = ""
    """The name of the error's class; empty if no exception was raised."""


@dataclass(frozen=True, slots=True)
class Released:
    """Hand the job back as if it had not been claimed: no attempt is charged, it runs next."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Throttled(Released):
    """Handed back, and nothing is to be claimed for `delay` seconds. Only where the protocol can throttle."""

    delay: float


@dataclass(frozen=True, slots=True)
class Parked(Released):
    """Handed back until its children are done, or at once if none is pending. Only where the protocol has flows."""


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Put the job off by `delay` seconds without charging an attempt."""

    claim: Claim
    delay: float


Outcome = Completed | Failed | Released | Snoozed


class Verdict(Enum):
    """What became of an outcome in the store."""

    COMPLETED = "completed"
    FAILED = "failed"
    RETRIED = "retried"
    RELEASED = "released"
    SNOOZED = "snoozed"
    PARKED = "parked"
    LOST = "lost"
    """Refused: the claim was no longer ours (or the job is gone). Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The answer to `settle`: a verdict per outcome in order, and the jobs claimed."""

    verdicts: Sequence[Verdict] = ()
    claims: Sequence[Claim] = ()
    next_in: float | None = None
    """Fewer jobs than asked for: seconds until the next one is known to come due."""
    blocked_for: float = 0.0
    """Claim nothing for this many seconds, whatever arrives (a rate limit)."""
