"""Counts of a worker's work so far, and the protocol of its observers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Protocol, Self

from jobwire.boundary import Claim, Outcome, Verdict


@dataclass(slots=True)
class Stats:
    """Counters since the worker started."""

    claimed: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    released: int = 0
    snoozed: int = 0
    parked: int = 0
    lost: int = 0
    recovered: int = 0
    heartbeats: int = 0
    heartbeat_failures: int = 0
    reconnects: int = 0
    duties_skipped: int = 0
    calls: int = 0
    last_call: float = 0.0
    """The time of the store's last answer to a claim or settle, by time.monotonic(). 0 if it has not answered yet."""

    @property
    def settled(self) -> int:
        """The number of outcomes that the store has taken."""
        return self.completed + self.failed + self.retried + self.released + self.snoozed + self.parked

    @classmethod
    def total(cls, parts: Collection[Stats]) -> Self:
        """Returns the sums of all counters, and the latest `last_call`."""
        total = cls()
        for part in parts:
            for field in fields(part):
                setattr(total, field.name, getattr(total, field.name) + getattr(part, field.name))
        total.last_call = max((part.last_call for part in parts), default=0.0)
        return total

    def count(self, verdict: Verdict) -> None:
        match verdict:
            case Verdict.COMPLETED:
                self.completed += 1
            case Verdict.FAILED:
                self.failed += 1
            case Verdict.RETRIED:
                self.retried += 1
            case Verdict.RELEASED:
                self.released += 1
            case Verdict.SNOOZED:
                self.snoozed += 1
            case Verdict.PARKED:
                self.parked += 1
            case Verdict.LOST:
                self.lost += 1

    def count_duty(self, recovered: int, missed: int) -> None:
        self.recovered += recovered
        self.duties_skipped += missed


class Observer(Protocol):
    """Called when a job starts and when it is settled, in the worker's event loop. Must be quick and not raise."""

    def started(self, claim: Claim) -> None: ...

    def settled(self, outcome: Outcome, verdict: Verdict) -> None: ...
