"""The consumer: the backend's side of one worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jobwire.boundary.claims import Claim, Outcome, Settled
from jobwire.checks import Seconds
from jobwire.model import Job
from jobwire.options import Keep
from jobwire.rate import Rate

Strategy = Callable[[int, Job, str], Seconds | None]
"""A worker's own backoff. Returns the wait after a failure from (failures, job, error), or None to fail the job for
good."""


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """The settings of a worker that concern its protocol. Durations are in seconds."""

    queue: str
    worker_id: str
    name: str | None = None
    lease: float = 30.0
    recover_every: float = 30.0
    max_stalled: int = 1
    timeout: float | None = None
    """The time limit of handlers, for jobs that have none of their own."""
    rate: Rate | None = None
    """The limit over all workers of the queue."""
    strategy: Strategy | None = None
    """Computes the wait before the next attempt of a job with a custom backoff. Without one, such a job fails."""
    strategies: Mapping[str, Strategy] = field(default_factory=dict[str, Strategy])
    """Strategies for custom backoffs of these names. `strategy` is for all others."""
    max_backoff: float = 3600.0
    keep_completed: Keep | None = None
    keep_failed: Keep | None = None
    native: object | None = None
    """Options that only this protocol has: an object of its class in `jobwire.native`."""

    def strategy_for(self, name: str | None) -> Strategy | None:
        """Returns the strategy for a custom backoff of this name."""
        return self.strategies.get(name or "", self.strategy)


@dataclass(frozen=True, slots=True)
class DutyReport:
    """The result of a duty: the ids of jobs that it recovered from dead workers, and a message for the log."""

    recovered: Collection[str] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Duty:
    """Work that the protocol asks of every worker periodically. The engine runs it at once and then every `every`
    seconds. It never overlaps itself. A failure is logged, and the next run is tried as usual. `name` completes the
    sentence "could not …"."""

    name: str
    every: float
    run: Callable[[], Awaitable[DutyReport]]


class Consumer(Protocol):
    """Claims jobs of one queue for one worker, settles them, extends their leases and waits for new ones."""

    async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        """Settles the outcomes and claims up to `claim` jobs, in one round trip, atomically per job.

        If the reply is lost, the caller can't see whether either has happened. Calling again with the same outcomes is
        safe: the verdict on one that had arrived is LOST. Jobs that the lost call claimed are recovered.
        """
        ...

    async def wait(self, timeout: float) -> None:
        """Returns when a job may be ready or the timeout is over, never earlier without a reason. May be cancelled."""
        ...

    async def pass_on(self) -> None:
        """Passes a wakeup that this worker has no free slot for on to another worker. Also called when the worker is
        paused: wakeups and jobs that a wait has taken, and that no claim has asked for, go to other workers."""
        ...

    async def extend(self, claims: Sequence[Claim]) -> Collection[Claim]:
        """Extends the leases. Returns the claims that are lost."""
        ...

    def duties(self) -> Sequence[Duty]:
        """Returns the protocol's periodic work, including the recovery of stalled jobs."""
        ...

    async def reset(self) -> None:
        """Drops connections that may be broken. The next call opens new ones."""
        ...

    async def close(self) -> None: ...
