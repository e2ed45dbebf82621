"""Snapshots of what a queue holds: jobs, states, events, schedules. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, NamedTuple, Protocol

from jobwire.errors import InvalidOption
from jobwire.generics import Out_co
from jobwire.rate import Rate
from jobwire.record import record


def _empty() -> dict[str, Any]:
    return {}  # several times as fast as dict[str, Any]()


class State(StrEnum):
    """The state of a job, in the same words for all protocols."""

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
        """True if no worker will run the job again, unless an operator retries it."""
        return self in (State.COMPLETED, State.FAILED, State.CANCELLED)


class AddStatus(StrEnum):
    """The outcome of adding a job."""

    ADDED = "added"
    DUPLICATE = "duplicate"
    """No new job: another one has its id or its unique key."""
    THROTTLED = "throttled"
    """No new job: a time window or the queue's policy admits no more of them now."""


def state_of(value: State | str) -> State:
    """Returns the state of that name."""
    try:
        return State(value)
    except ValueError:
        raise InvalidOption("state", value, f"must be one of {', '.join(State)}") from None


class Waiter(Protocol):
    """The part of a queue that `Job.wait` uses."""

    async def wait(self, job_id: str, timeout: float | timedelta | None = None) -> Any: ...


@record
class Job(Generic[Out_co]):
    """A job as it was when it was read. `raw` is its stored form, with fields that jobwire has no name for.

    `Job[Receipt]` is a job of a typed task whose result is a Receipt.
    """

    id: str
    queue: str
    name: str
    data: Any
    state: State = State.WAITING
    native_state: str = ""
    """The protocol's own word for the state."""
    priority: int = 0
    """Compared as the protocol does: with BullMQ lower ones run first, with pg-boss and BridgeMQ higher ones."""
    attempts: int | None = None
    """Runs in all. None for a job that was just added, if the store decides the number."""
    attempts_made: int = 0
    """Runs that have been charged: those that ended with a result or an error."""
    progress: Any = None
    result: Out_co | None = None
    error: str | None = None
    """The message of the last failure."""
    stacktrace: tuple[str, ...] = ()
    """The stacks of the failures that the store has kept, oldest first."""
    created_at: datetime | None = None
    run_at: datetime | None = None
    """The time at which a delayed job is due."""
    started_at: datetime | None = None
    """The beginning of the last run."""
    finished_at: datetime | None = None
    worker: str | None = None
    """The worker that runs the job or ran it last, where the store keeps that."""
    add_status: AddStatus | None = None
    """The outcome of `add`. None for a job that was read. Unless it is ADDED, `id` is that of the existing job."""
    parent: JobKey | None = None
    """The job that waits for this one, in a flow."""
    raw: Mapping[str, Any] = field(default_factory=_empty, repr=False)
    origin: Waiter | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leaves out the queue, which can't be pickled: another process can't wait for the job through it."""
        return type(self), tuple(getattr(self, one.name) for one in fields(self) if one.name != "origin")

    async def wait(self, timeout: float | timedelta | None = None) -> Out_co:
        """Waits until the job has completed and returns its result. Raises JobFailed or WaitTimeout."""
        if self.origin is None:
            raise RuntimeError(f"job {self.id} was not read through a queue, so it can't be waited for")
        return await self.origin.wait(self.id, timeout)


@record
class Event:
    """Something that happened on a queue. `id` is a cursor: `events(since=id)` continues after this event.

    `kind` is jobwire's word for it and `native_type` the protocol's, or that of the application that published the
    event. `data` holds the event's native fields.
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
    """The jobs of one call, and the cursor to continue after them (None: there are no more)."""

    def __init__(self, jobs: Iterable[Job] = (), cursor: str | None = None) -> None:
        super().__init__(jobs)
        self.cursor = cursor


class EventKind(StrEnum):
    """Kinds of events, in the same words for all protocols."""

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
    """Anything else, for example an event that an application has published: see `native_type`."""


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
    """A queue and the id of a job in it: parents and children may be in different queues."""

    queue: str
    id: str


@dataclass(frozen=True, slots=True)
class Children:
    """The states of a job's children. Each child is in one of the four fields."""

    values: Mapping[JobKey, Any] = field(default_factory=dict[JobKey, Any])
    """The results of children that have completed."""
    ignored: Mapping[JobKey, str] = field(default_factory=dict[JobKey, str])
    """The errors of children whose failure does not fail the parent."""
    pending: tuple[JobKey, ...] = ()
    failed: tuple[JobKey, ...] = ()
    """The children whose failure fails the parent."""

    def __len__(self) -> int:
        return len(self.values) + len(self.ignored) + len(self.pending) + len(self.failed)

    def keys(self) -> tuple[JobKey, ...]:
        """Returns all children, in any state."""
        return (*self.values, *self.ignored, *self.pending, *self.failed)


@dataclass(frozen=True, slots=True)
class JobTree:
    """A job and its children, as they were when they were added or read."""

    job: Job
    children: tuple[JobTree, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for all workers of a queue together, jobwire's and peers'."""

    concurrency: int | None = None
    """Jobs that may run at a time."""
    rate: Rate | None = None
    blocked_for: float = 0.0
    """Seconds until the current window or throttle ends."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker that is connected to the store, jobwire's or a peer's."""

    name: str
    address: str = ""
    client: str = ""
    """The library by which it is connected and its version, such as `redis-py 8.1.0`, if the store has them."""
    seen_at: datetime | None = None
    """The time of its last sign of life, if the store has that. A worker without it is connected all the same."""
    raw: Mapping[str, Any] = field(default_factory=_empty, repr=False)
