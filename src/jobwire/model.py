"""What jobwire shows of a queue: jobs, their states, events. Snapshots, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from jobwire.record import record


def _empty() -> dict[str, Any]:
    return {}  # several times as quick as dict[str, Any]()


class State(StrEnum):
    """Where a job is in its life, in one vocabulary for all protocols."""

    WAITING = "waiting"
    DELAYED = "delayed"
    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    WAITING_CHILDREN = "waiting_children"

    @property
    def finished(self) -> bool:
        """True once no worker will touch the job again unless someone asks for it."""
        return self in (State.COMPLETED, State.FAILED, State.CANCELLED)


class Waiter(Protocol):
    """What a job needs of the queue it came from to be waited for."""

    async def wait(self, job_id: str, timeout: float | timedelta | None = None) -> Any: ...


@record
class Job:
    """A job as it was when it was read. `raw` keeps the stored form, for what jobwire has no name for."""

    id: str
    queue: str
    name: str
    data: Any
    state: State = State.WAITING
    native_state: str = ""
    priority: int = 0
    attempts: int | None = None
    """Runs in all; None where the store decides it and the job was not read from there, but just added."""
    attempts_made: int = 0
    progress: Any = None
    result: Any = None
    error: str | None = None
    stacktrace: tuple[str, ...] = ()
    created_at: datetime | None = None
    run_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    worker: str | None = None
    refused: str | None = None
    """Set by add when the store made no new job, with the reason; `id` is then the job that was there first."""
    raw: Mapping[str, Any] = field(default_factory=_empty, repr=False)
    origin: Waiter | None = field(default=None, repr=False, compare=False)

    async def wait(self, timeout: float | timedelta | None = None) -> Any:
        """The job's result once it has completed; raises JobFailed or WaitTimeout."""
        if self.origin is None:
            raise RuntimeError(f"job {self.id} was not read through a queue, so it can't be waited for")
        return await self.origin.wait(self.id, timeout)


@record
class Event:
    """One thing that happened on a queue. `id` is a cursor: give it to `events(since=)` to go on after it.

    `native_type` is the protocol's own word, also of an event that an application has published; `kind` is ours.
    `data` holds the event's native fields.
    """

    id: str
    kind: EventKind
    native_type: str
    job_id: str | None = None
    at: datetime | None = None
    data: Mapping[str, Any] = field(default_factory=_empty)
    result: Any = None
    error: str | None = None


class Page(list[Job]):
    """Jobs of one call, and the cursor that continues after them (None: there are no more)."""

    def __init__(self, jobs: Iterable[Job] = (), cursor: str | None = None) -> None:
        super().__init__(jobs)
        self.cursor = cursor


class EventKind(StrEnum):
    """What happened, in one word for all protocols."""

    ADDED = "added"
    DUPLICATE = "duplicate"
    """A job was not added: another one has its id or its unique key."""
    WAITING = "waiting"
    WAITING_CHILDREN = "waiting_children"
    DELAYED = "delayed"
    ACTIVE = "active"
    PROGRESS = "progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STALLED = "stalled"
    REMOVED = "removed"
    PAUSED = "paused"
    RESUMED = "resumed"
    OTHER = "other"
    """Anything else, events of an application among it: see `native_type`."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A repeating job as the store holds it."""

    key: str
    queue: str
    name: str
    every: float | None = None
    cron: str | None = None
    tz: str | None = None
    data: Any = None
    next_run: datetime | None = None
    runs: int | None = None
    limit: int | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    raw: Mapping[str, Any] = field(default_factory=_empty, repr=False)


class JobKey(NamedTuple):
    """A job's place in the store: families of jobs may span queues."""

    queue: str
    id: str


@dataclass(frozen=True, slots=True)
class Children:
    """What has become of a job's children so far. A child is in one of the four at a time."""

    values: Mapping[JobKey, Any] = field(default_factory=dict[JobKey, Any])
    """Results of those that completed."""
    ignored: Mapping[JobKey, str] = field(default_factory=dict[JobKey, str])
    """Errors of those that failed and were to be ignored, or to let their parent continue."""
    pending: tuple[JobKey, ...] = ()
    failed: tuple[JobKey, ...] = ()
    """Those whose failure fails their parent."""

    def __len__(self) -> int:
        return len(self.values) + len(self.ignored) + len(self.pending) + len(self.failed)

    def keys(self) -> tuple[JobKey, ...]:
        """All children, whatever has become of them."""
        return (*self.values, *self.ignored, *self.pending, *self.failed)


@dataclass(frozen=True, slots=True)
class JobTree:
    """A job and its children, as they were when they were added or read."""

    job: Job
    children: tuple[JobTree, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds all workers of a queue back, whatever language they are written in."""

    concurrency: int | None = None
    """Jobs that may run at a time."""
    rate: tuple[int, float] | None = None
    """So many jobs in so many seconds."""
    blocked_for: float = 0.0
    """Seconds until the current window or throttle ends."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker that the store knows to be connected, jobwire's or a peer's."""

    name: str
    address: str = ""
    raw: Mapping[str, Any] = field(default_factory=_empty, repr=False)
