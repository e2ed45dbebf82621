"""Findings about a store, and the part of a backend that looks for them.

A `FindingKind` has the words that are the same each time. `kind.found(…)` adds the evidence. Kinds that several
protocols share are in `boundary.finding_kinds`, the others beside the code that finds them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Severity(StrEnum):
    """The weight of a finding."""

    CRITICAL = "critical"
    """Jobs are lost or stand still, or will be."""
    WARNING = "warning"
    """Jobs may be lost or delayed."""
    NOTE = "note"
    """Nothing is at risk. It is worth knowing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a store that loses or delays jobs, or could not be looked at."""

    code: str
    """The kind of finding, the same in every release: `eviction`."""
    severity: Severity
    title: str
    """One sentence without numbers or names."""
    evidence: str
    """The values that were read."""
    risk: str
    """The consequence if nothing is done."""
    remedy: str
    """A command or a setting to copy."""
    queue: str | None = None
    """The queue that it concerns, or None if it concerns the store."""
    fix: str = ""
    """The change that `fix` would make, such as "create 2 indexes". Empty if a person must decide."""

    @property
    def fixable(self) -> bool:
        """True if `jobwire doctor --fix` can do something about it: what is safe, and harmless when done twice."""
        return bool(self.fix)

    @property
    def troubling(self) -> bool:
        """True unless it is a note."""
        return self.severity is not Severity.NOTE


@dataclass(frozen=True, slots=True)
class FindingKind:
    """The words that all findings of one code share."""

    code: str
    severity: Severity
    title: str
    risk: str
    remedy: str

    def found(
        self,
        evidence: str,
        *,
        queue: str | None = None,
        severity: Severity | None = None,
        risk: str | None = None,
        remedy: str | None = None,
        fix: str = "",
    ) -> Finding:
        """Returns a finding with this evidence. Words that fit this case better replace the usual ones."""
        return Finding(
            self.code,
            severity or self.severity,
            self.title,
            evidence,
            risk or self.risk,
            remedy or self.remedy,
            queue,
            fix,
        )


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The values from which on something is a finding. Times are in seconds."""

    clock: float = 1.0
    """Difference between the clocks of the store and of this machine."""
    waiting: float = 600.0
    """Age of the oldest waiting job."""
    overdue: float = 60.0
    """Time by which a schedule or a delayed job is late."""
    paused: float = 3600.0
    """Age of the oldest waiting job of a paused queue."""
    finished: int = 100_000
    """Finished jobs of one queue."""
    events: int = 100_000
    """Events of one queue's stream."""
    connections: float = 0.8
    """Share of the connections that the server allows."""
    memory: float = 0.9
    """Share of the memory that the server may use."""
    replica_lag: float = 10.0
    open_transaction: float = 60.0
    """Age of a transaction that does nothing."""
    dead_rows: int = 10_000
    """Dead rows of one table, if they are also a fifth of it."""
    transaction_age: int = 1_500_000_000
    """Transactions since the oldest one whose number is still in use."""
    upkeep: float = 900.0
    """Time since maintenance was last done."""


DEFAULT_THRESHOLDS = Thresholds()


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look at. `name` is a noun for messages: "persistence"."""

    name: str
    run: Callable[[], Awaitable[Sequence[Finding]]]


class Diagnosis(Protocol):
    """Looks at the server's settings and at stored data. Reads a bounded amount. Only `fix` changes something."""

    async def server(self) -> str:
        """Returns the server's name and version: "Valkey 8.1.1"."""
        ...

    async def now(self) -> float:
        """Returns seconds since 1970 by the server's clock, asked for in this call."""
        ...

    async def stalled(self, queue: str, limit: int) -> Sequence[str]:
        """Returns the ids of up to `limit` stalled jobs."""
        ...

    def checks(self, queues: Sequence[str], thresholds: Thresholds) -> Sequence[Check]:
        """Returns the checks that only this protocol or its server needs, of the store and of these queues."""
        ...

    async def fix(self, finding: Finding) -> str:
        """Does what `finding.fix` describes. Returns what was done. Looks again first, since time has passed."""
        ...
