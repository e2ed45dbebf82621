"""The pipeline's boundary: queues of one store, read and written in bulk by blocking code in Spark's processes.

A `QueueStore` is created in every process from an address, so it keeps nothing but its connection. A `StoreConnection`
opens many queues over one connection. Partitions and
offsets travel between processes: partitions are picklable, offsets are flat dicts of texts and numbers that a later
release can still read.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from jobwire.boundary import Acted
from jobwire.driver_imports import one_at_a_time
from jobwire.errors import MissingExtra
from jobwire.model import State
from jobwire.pipeline.lake.rows import JobRow
from jobwire.protocols import PROTOCOLS
from jobwire.urls import Address

Offset = Mapping[str, Any]
BATCH_ROWS = 5_000
"""Rows in a record batch: large enough for Arrow to be efficient, small enough for jobs of a megabyte to fit in memory.
"""


@dataclass(frozen=True)
class Wanted:
    """A filter for jobs. It is a hint: rows outside may be yielded, rows inside must be."""

    states: frozenset[State] | None = None
    names: frozenset[str] | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    finished_from: datetime | None = None
    """Finished jobs only from here on. Jobs that have not finished are wanted in any case."""
    finished_before: datetime | None = None

    def state(self, state: State) -> bool:
        """Returns whether jobs in the state are wanted."""
        return self.states is None or state in self.states

    def row(self, job: JobRow) -> bool:
        """Returns whether a row, with its times in microseconds, is wanted. A malformed one always is."""
        if job.malformed is not None:
            return True
        if self.names is not None and job.name not in self.names:
            return False
        if self.states is not None and job.state not in self.states:
            return False
        created = job.created_at
        if not isinstance(created, int):
            return True
        return (self.created_from is None or created >= self.created_from.timestamp() * 1e6) and (
            self.created_before is None or created < self.created_before.timestamp() * 1e6
        )


class Stamp(NamedTuple):
    """A finished job as it was archived."""

    id: str
    state: str
    fingerprint: str


@dataclass(frozen=True)
class Purged:
    """The ids that the store removed, and those that it kept because they have changed since they were archived."""

    removed: Sequence[str] = field(default_factory=tuple[str, ...])
    kept: Sequence[str] = field(default_factory=tuple[str, ...])


class QueueStore(Protocol):
    """One queue in one store. Every method blocks."""

    def plan_jobs(self, wanted: Wanted, parts: int) -> Sequence[Any]:
        """Returns about `parts` balanced partitions that together hold every job of the queue; fewer if there is less
        to read."""
        ...

    def read_jobs(self, part: Any, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Yields the partition's jobs in the columns of schemas.JOBS. A malformed one is a row with its reason, never
        an error. A job that moves to another state during the read is read at least once."""
        ...

    def first_offset(self) -> Offset:
        """Returns the offset before every event that the store still has; the same at every call."""
        ...

    def latest_offset(self, start: Offset, max_rows: int | None) -> Offset:
        """Returns the offset after the newest event, or after about `max_rows` events from the start. Returns `start`
        itself if there is nothing new."""
        ...

    def passed(self, offset: Offset, target: Offset) -> bool:
        """Returns whether the offset lies at or after the target: every event before the target has been read."""
        ...

    def plan_events(self, start: Offset, end: Offset) -> Sequence[Any]:
        """Returns partitions that together hold the events after `start` up to and with `end`."""
        ...

    def read_events(self, part: Any) -> Iterator[pa.RecordBatch]:
        """Yields the partition's events in the columns of schemas.EVENTS, the same ones at every call as long as the
        store keeps them. What it no longer keeps is a row of kind `gap` with `after` and `before`."""
        ...

    def present(self, ids: Sequence[str]) -> Collection[str]:
        """Returns those of the ids that the queue holds, in any state."""
        ...

    def payloads(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Returns the payloads, as JSON texts, of those of the ids that the queue holds."""
        ...

    def purge(self, stamps: Sequence[Stamp]) -> Purged:
        """Removes finished jobs. In one step with the removal, the store checks for each that it is still in this state
        and has this fingerprint."""
        ...

    def remove_waiting(self, ids: Sequence[str]) -> Sequence[Acted]:
        """Removes jobs that wait or are delayed, with everything that belongs to them. In one step with the removal,
        the store checks for each that it is in one of these states. Others stay: the answer is NOT_FOUND for a job that
        the queue does not hold, and another one for a job that is running, has finished or is needed by a schedule.

        Quickest if the ids are in the order in which the jobs would run.
        """
        ...

    def put_finished(self, jobs: pa.RecordBatch) -> int:
        """Stores finished jobs (columns of schemas.JOBS) as this protocol's own, in their state and with their ids,
        times, results and errors, unless a job of that id is there. Returns how many were new.

        Jobs that came from the same protocol get back all that `raw` holds.
        """
        ...

    def close(self) -> None: ...


class StoreConnection(Protocol):
    """A connection to a store, for many of its queues. Each thread needs one of its own."""

    merges: bool
    """True if one `QueueStore` can read many queues at once, for no more than one queue costs."""

    def queue(self, queues: Sequence[str]) -> QueueStore:
        """Returns a queue; where the store merges, several that are read as one. It is closed with the connection."""
        ...

    def expect(self, queues: Sequence[str]) -> None:
        """Fetches in one step what `queue` would fetch for each of these queues."""
        ...

    def sizes(self, queues: Sequence[str], wanted: Wanted) -> Mapping[str, int]:
        """Returns about how many of the jobs that are wanted each queue holds. A queue that is left out holds none."""
        ...

    def close(self) -> None: ...


def open_store(address: Address, queue: str, name: str) -> QueueStore:
    """Returns the queue at the address; `name` fills the column `store`. For embedded servers see address.py."""
    return connect(address, name).queue([queue])


def connect(address: Address, name: str) -> StoreConnection:
    """Connects to the store at the address; `name` fills the column `store`."""
    connection: StoreConnection = _module_of(address).connect(address, name)
    return connection


def look(address: Address, queues: Sequence[str]) -> str:
    """Returns a text that differs once a job of these queues was added, was removed or changed its state. It costs a
    few queries, whatever number of queues there are; no job is read."""
    seen = [list(queues), _module_of(address).look(address, queues)]
    return hashlib.sha256(repr(seen).encode("utf-8", "surrogatepass")).hexdigest()


def list_queues(address: Address) -> Sequence[str]:
    """Returns the names of the queues in the store, sorted."""
    queues: Sequence[str] = _module_of(address).list_queues(address)
    return queues


def _module_of(address: Address) -> Any:
    """Returns the module of the protocol's store. Raises MissingExtra if its driver is not installed."""
    try:
        with one_at_a_time():
            return importlib.import_module(f"jobwire.pipeline.stores.{address.protocol}.store")
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("jobwire."):
            raise
        raise MissingExtra(f"{address.protocol}:", PROTOCOLS[address.protocol].store) from missing
