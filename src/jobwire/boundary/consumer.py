"""The consumer: what a worker asks of a protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jobwire.boundary.claims import Claim, Outcome, Settled
from jobwire.model import Job
from jobwire.options import Keep, Seconds
from jobwire.rate import Rate

Strategy = Callable[[int, Job, str], Seconds | None]
"""A worker's own backoff: the wait after a failure, from (failures, job, error), or None to fail the job for good."""


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """What a worker tells the protocol. Durations in seconds."""

    queue: str
    worker_id: str
    name: str | None = None
    lease: float = 30.0
    recover_every: float = 30.0
    max_stalled: int = 1
    timeout: float | None = None
    """How long a handler may run, unless its job says otherwise."""
    rate: Rate | None = None
    """The limit over all workers of the queue."""
    strategy: Strategy | None = None
    """The wait before the next attempt of a job with a custom backoff; None fails the job."""
    strategies: Mapping[str, Strategy] = field(default_factory=dict[str, Strategy])
    """Strategies for custom backoffs of these names; the one above is for all others."""
    max_backoff: float = 3600.0
    keep_completed: Keep | None = None
    keep_failed: Keep | None = None
    native: object | None = None
    """Options of one protocol only, of that protocol's class in `jobwire.native`."""

    def strategy_for(self, name: str | None) -> Strategy | None:
        """The strategy for a custom backoff of this name."""
        return self.strategies.get(name or "", self.strategy)


@dataclass(frozen=True, slots=True)
class DutyReport:
    """What a duty found to do: jobs taken back from dead workers, anything worth a line in the log."""

    recovered: Collection[str] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Duty:
    """Something the protocol asks every worker to do now and then. The engine runs it at once, then periodically;
    it never overlaps itself, and a failure is logged and tried again."""

    name: str
    every: float
    run: Callable[[], Awaitable[DutyReport]]


class Consumer(Protocol):
    """One worker's hold on one queue."""

    async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        """Finish the outcomes and claim up to `claim` jobs, in one round trip, atomically per job.

        A lost reply leaves both unknown: calling again with the same outcomes is safe (LOST if they had landed),
        and jobs claimed by the lost call come back through recovery.
        """
        ...

    async def wait(self, timeout: float) -> None:
        """Return when a job may be ready, or after the timeout; never early without a reason. May be cancelled."""
        ...

    async def pass_on(self) -> None:
        """Gives a wake-up that this worker has no free slot for to another worker. Also called when the worker is
        paused: what was taken in waits, and no claim has asked for, is left to others."""
        ...

    async def extend(self, claims: Sequence[Claim]) -> Collection[Claim]:
        """Renew the leases; the claims returned are no longer ours."""
        ...

    def duties(self) -> Sequence[Duty]:
        """The protocol's periodic work, stalled recovery among it."""
        ...

    async def reset(self) -> None:
        """Drop connections that may be dead; the next call opens new ones."""
        ...

    async def close(self) -> None: ...
