"""Claims: jobs that a worker holds, the outcomes of their runs, and the store's verdicts on these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from jobwire.model import Job
from jobwire.record import record


@dataclass(slots=True, eq=False)
class Claim:
    """A job that this worker may run until its lease ends. The token belongs to this claim only."""

    job: Job
    token: str
    timeout: float | None = None
    doomed: str | None = None
    """The reason why the job must fail without being run, if there is one."""
    run_seconds: float = 0.0
    """The time that the handler ran. Set by the engine when it has ended."""

    @property
    def trace_context(self) -> Mapping[str, str]:
        """The trace that the producer's telemetry has stored with the job, as headers of OpenTelemetry. Empty if there
        is none, or if the protocol does not store one."""
        return {}


@record
class Completed:
    claim: Claim
    result: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler failed. The protocol's rules decide whether another attempt follows, unless `final`. `delay`, if
    given, replaces the job's own backoff."""

    claim: Claim
    error: str
    stack: str = ""
    final: bool = False
    delay: float | None = None
    kind: str = ""
    """The name of the error's class; empty if no exception was raised."""


@dataclass(frozen=True, slots=True)
class Released:
    """The job goes back as if it had not been claimed: no attempt is charged, and it is ready at once."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Throttled(Released):
    """The job goes back, and no job is claimed for `delay` seconds. Only if the protocol has Feature.THROTTLE."""

    delay: float


@dataclass(frozen=True, slots=True)
class Parked(Released):
    """The job goes back until its children have finished, or is ready at once if none is pending. Only if the protocol
    has flows."""


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The job is put off by `delay` seconds, without charging an attempt."""

    claim: Claim
    delay: float


Outcome = Completed | Failed | Released | Snoozed


class Verdict(Enum):
    """The result of settling: what the store made of an outcome."""

    COMPLETED = "completed"
    FAILED = "failed"
    RETRIED = "retried"
    RELEASED = "released"
    SNOOZED = "snoozed"
    PARKED = "parked"
    LOST = "lost"
    """Refused: the claim was not valid any more, or the job is gone. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The answer to `settle`: one verdict per outcome, in order, and the claimed jobs."""

    verdicts: Sequence[Verdict] = ()
    claims: Sequence[Claim] = ()
    next_in: float | None = None
    """If there were fewer jobs than asked for: seconds until the next one is due, if that is known."""
    blocked_for: float = 0.0
    """Seconds for which no job may be claimed, because of a rate limit."""
