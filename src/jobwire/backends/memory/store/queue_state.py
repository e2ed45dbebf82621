"""One queue of a store: its jobs, the container that each is in, and the moves between containers.

A job is in `ready` (by priority, then by turn), in `delayed` (by due time), in `active` under a lease, or in one of
`finished`. Every method runs under the store's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, takewhile

from jobwire.backends.memory.store.event_log import EventLog, LoggedEvent
from jobwire.backends.memory.store.ordered_ids import OrderedIds
from jobwire.backends.memory.store.record import Record
from jobwire.backends.memory.store.signals import Signal
from jobwire.backends.memory.store.unique_keys import UniqueKeys
from jobwire.backends.rules import Rank
from jobwire.boundary import PreparedJob
from jobwire.checks import seconds
from jobwire.model import State
from jobwire.options import Keep
from jobwire.rate import Rate


@dataclass(slots=True)
class Repeat:
    """A schedule: the template of its jobs, the due time of the pending one, and the number of jobs made."""

    key: str
    name: str
    data: bytes
    template: PreparedJob
    every: int | None
    cron: str | None
    tz: str | None
    limit: int | None
    start: int | None
    end: int | None
    next: int | None = None
    runs: int = 0
    pending: str | None = None


@dataclass(slots=True)
class RateWindow:
    """Jobs started since the window opened, over all workers."""

    started: int = 0
    until: int = 0


@dataclass(slots=True)
class ConnectedWorker:
    """A connected worker and its number of open consumers."""

    name: str
    consumers: int = 0


@dataclass
class QueueState:
    name: str
    numbers: Iterator[int]
    of: Callable[[str], QueueState]
    """The queues of the store, by name: parents and children may be in any of them."""
    rank: Rank
    jobs: dict[str, Record] = field(default_factory=dict[str, Record])
    ready: OrderedIds = field(default_factory=OrderedIds)
    delayed: OrderedIds = field(default_factory=OrderedIds)
    parents: dict[str, int] = field(default_factory=dict[str, int])
    """Jobs that wait for their children."""
    active: dict[str, int] = field(default_factory=dict[str, int])
    finished: dict[State, dict[str, int]] = field(
        default_factory=lambda: {s: dict[str, int]() for s in (State.COMPLETED, State.FAILED, State.CANCELLED)}
    )
    unique: UniqueKeys = field(default_factory=UniqueKeys)
    repeats: dict[str, Repeat] = field(default_factory=dict[str, Repeat])
    workers: dict[str, ConnectedWorker] = field(default_factory=dict[str, ConnectedWorker])
    window: RateWindow = field(default_factory=RateWindow)
    rate: Rate | None = None
    concurrency: int | None = None
    throttled_until: int = 0
    paused: bool = False
    last_id: int = 0
    added: list[Record] | None = None
    """All jobs that were ever added, also those that are deleted, if the store keeps them."""
    log: EventLog = field(default_factory=EventLog)
    work: Signal = field(default_factory=Signal)
    """Wakes consumers when there may be something new to claim: a job, an earlier due time, a resume."""
    news: Signal = field(default_factory=Signal)
    """Wakes readers of the event stream, at every event."""

    def log_event(self, event: str, now: int, record: Record | None = None, /, **fields: str | bytes) -> None:
        """Writes to the event log. Values given as bytes are JSON."""
        job_id = record.id if record is not None else None
        self.log.append(LoggedEvent(next(self.numbers), event, now, job_id, fields))
        self.news.wake()

    def put(self, record: Record, now: int, *, prev: State | None = None, front: bool = False) -> None:
        """Puts a job that is in no container into `delayed` if it is not due yet, otherwise into `ready`."""
        was = {"prev": prev.value} if prev is not None else {}
        if record.due > now:
            record.state = State.DELAYED
            self.delayed.put(record.id, (record.due, next(self.numbers)))
            self.log_event("delayed", now, record, delay=str(record.due))
        else:
            record.state = State.WAITING
            self.put_ready(record, front=front)
            self.log_event("waiting", now, record, **was)
        self.work.wake()

    def put_ready(self, record: Record, *, front: bool) -> None:
        """Puts the job into `ready`, behind all others of its priority or before them."""
        number = next(self.numbers)
        rank, newest_first = self.rank(record.priority)
        self.ready.put(record.id, (rank, -number if front or newest_first else number))

    def make_due_ready(self, now: int) -> None:
        while (first := self.delayed.first()) is not None and first[0][0] <= now:
            record = self.jobs[first[1]]
            self.delayed.discard(record.id)
            self.put(record, now, prev=State.DELAYED)

    @property
    def closed(self) -> bool:
        """True if no job may start now: the queue is paused, or its limit on concurrency is reached."""
        return self.paused or (self.concurrency is not None and len(self.active) >= self.concurrency)

    def next_due(self) -> int | None:
        first = self.delayed.first()
        return first[0][0] if first is not None else None

    def take_out(self, record: Record) -> State:
        """Takes the job out of its container. Returns the state that it had there."""
        self.ready.discard(record.id)
        self.delayed.discard(record.id)
        self.parents.pop(record.id, None)
        if self.active.pop(record.id, None) is not None and self.concurrency is not None:
            self.work.wake()
        if record.state.finished:
            self.finished[record.state].pop(record.id, None)
        record.token = None
        return record.state

    def finish(self, record: Record, state: State, now: int, keep: Keep | None) -> None:
        """Moves the job to its final state and deletes finished jobs beyond what `keep` allows."""
        self.take_out(record)
        record.state = state
        record.finished = now
        self.unique.release(record, finished=True)
        ids = self.finished[state]
        ids[record.id] = next(self.numbers)
        if keep is None:
            return
        if keep.age is not None:
            cutoff = now - round(seconds("keep.age", keep.age) * 1000)
            for job_id in list(takewhile(lambda job_id: (self.jobs[job_id].finished or 0) <= cutoff, ids)):
                self.forget(self.jobs[job_id])
        if keep.count is not None:
            for job_id in list(islice(ids, max(0, len(ids) - keep.count))):
                self.forget(self.jobs[job_id])

    def forget(self, record: Record) -> State:
        """Deletes the job with everything that belongs to it. Returns its last state."""
        state = self.take_out(record)
        self.unique.release(record)
        del self.jobs[record.id]
        return state

    def is_pending_repeat(self, record: Record) -> bool:
        """Returns True if the job is the pending one of its schedule: without it, the schedule would stop."""
        if record.schedule_key is None or record.state not in (State.WAITING, State.DELAYED):
            return False
        repeat = self.repeats.get(record.schedule_key)
        return repeat is not None and repeat.pending == record.id
