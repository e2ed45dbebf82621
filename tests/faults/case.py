"""A finished run, as the checker sees it: the ledger, and the store at rest. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from faults.kinds import ATTEMPTS
from faults.ledger import Entry, Kind

FINAL = ("completed", "failed", "cancelled")
FOREIGN = -1
"""The number of a job that no producer of the ledger has added."""


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as the store has it in the end. `token` is that of the claim whose outcome was accepted."""

    id: str
    n: int
    state: str
    token: str
    attempts_made: int = 0
    attempts: int = ATTEMPTS
    """Runs that the job may have, as the store has it."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Vitals:
    """What a process, or the server, has in use."""

    threads: int = 0
    sockets: int = 0
    memory: int = 0
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Promises:
    """What a run promises beside what every run does."""

    overtaken: int | None = None
    """Jobs that later ones may overtake, if jobs start in the order of their adds. One may be for each claim that was
    lost before its handler started. None: the order is not promised."""
    rate: tuple[int, float] | None = None
    """Starts in a period, and its seconds, over all workers."""
    at_once: int | None = None
    """Jobs that run at a time, over all workers."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What is there when the load is over and nothing happens any more."""

    jobs: Sequence[StoredJob]
    counts: Mapping[str, int]
    residue: Sequence[str] = ()
    connections: Sequence[str] = ()
    """Those that the server still has when the last worker has ended."""
    survivors: Mapping[str, tuple[Vitals, Vitals]] = field(default_factory=dict[str, tuple[Vitals, Vitals]])
    """Workers that lived through everything, after their first jobs and in the end."""
    foreign: Mapping[str, int] = field(default_factory=dict[str, int])
    """Records that the run itself put into the store, past jobwire: how many of them must be in each state."""
    promises: Promises = Promises()


@dataclass(frozen=True, slots=True)
class Case:
    """The ledger and the store, with indexes that several rules use."""

    entries: Sequence[Entry]
    rest: Rest
    runs: Mapping[str, Sequence[Entry]]
    """The starts of each job's runs."""

    def of(self, *kinds: Kind) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.kind in kinds)

    @property
    def own(self) -> Iterator[StoredJob]:
        return (job for job in self.rest.jobs if job.n != FOREIGN)
