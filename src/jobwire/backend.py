"""The one boundary. Everything above is written once; everything below knows one protocol only.

A `Backend` is a store reached through one protocol: it adds, reads and administers jobs. A `Consumer` is one worker's
hold on one queue of it: it claims, settles and keeps jobs. All operations are batch-first. Whatever a driver raises
leaves a backend as StoreUnavailable (try again) or StoreRefused (don't).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol

from jobwire.errors import NotSupported
from jobwire.model import Event, Job, Page, Schedule, State, WorkerInfo
from jobwire.options import Keep, NewJob, NewSchedule, Seconds
from jobwire.record import record


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a protocol can hold. Asked for before a call is made; what is missing is refused, never ignored."""

    protocol: str
    job_names: bool = False
    """A job carries a name of its own beside the queue's."""
    custom_ids: bool = False
    priority: Literal["low_first", "high_first"] | None = None
    priority_classes: int | None = None
    """How many classes of priority the order tells apart; within one, jobs keep their order. None: every number."""
    default_priority: int = 0
    """Of a job that names none."""
    lifo: bool = False
    per_job_attempts: bool = False
    default_attempts: int | None = None
    """Of a job that names none; None: the store decides, and the client that adds it does not know."""
    backoff: frozenset[str] = frozenset()
    """Backoff kinds that a job can carry."""
    job_timeout: bool = False
    expires: bool = False
    keep: bool = False
    unique: frozenset[str] = frozenset()
    """Of {"key", "ttl", "extend", "replace", "owner"}; owner: who holds a key can be read, and the key released."""
    flows: bool = False
    routing: bool = False
    transactional_add: bool = False
    transactional_settle: bool = False
    """A handler can write in a transaction that commits together with its job's completion."""
    progress: bool = False
    logs: bool = False
    results: bool = False
    null_character: bool = True
    """Texts in data and results may hold U+0000."""
    null_key: bool = True
    """And so may the keys of objects in data."""
    no_data: bytes = b"null"
    """What the protocol's own client stores for a job that is added without data, as JSON."""
    split_from: int = 8
    """From this concurrency on a worker has two calls under way at a time; below, one with everything is quicker."""
    events: bool = False
    pause: bool = False
    cancel: bool = False
    promote: bool = False
    bulk: bool = False
    """All finished jobs can be retried, and all delayed ones promoted, without naming them."""
    priority_counts: bool = False
    """Waiting jobs can be counted per priority."""
    retry_anew: bool = False
    """A retried job can be given all of its attempts again."""
    edits: frozenset[str] = frozenset()
    """Of {"data", "priority", "delay", "logs"}: what an operator can change in a job."""
    custom_events: bool = False
    """The event stream takes events of one's own, and can be trimmed."""
    schedules: frozenset[str] = frozenset()
    """Of {"every", "cron", "tz", "limit", "window", "immediately"}."""
    rate_limit: bool = False
    throttle: bool = False
    """A handler can hold up its worker, and the rate-limited workers of the queue, for a while."""
    global_rate: bool = False
    """The queue itself can carry a rate limit for all workers."""
    global_concurrency: bool = False
    """The queue itself can carry a limit of jobs that run at a time."""
    workers: bool = False
    nearest: Mapping[str, str] = field(default_factory=dict[str, str])
    """For a missing feature: what the protocol offers instead, as the end of a sentence."""

    def require(self, feature: str, words: str, *, one: str | None = None) -> None:
        """Raise NotSupported unless the protocol has the feature (or the one asked for, of a set)."""
        value = getattr(self, feature)
        if (one in value) if one is not None else value:
            return
        key = f"{feature}.{one}" if one is not None else feature
        raise NotSupported(self.protocol, words, self.nearest.get(key, self.nearest.get(feature, "")))


class PreparedJob(NamedTuple):
    """A checked job with its data encoded once; its options too, if the protocol keeps them in a form of their own."""

    new: NewJob
    name: str
    data: bytes
    options: bytes | None = None


class Added(NamedTuple):
    """The id of the job that now stands for the request, and why it is not a new one, if it isn't."""

    id: str
    refused: str | None = None


@dataclass(slots=True, eq=False)
class Claim:
    """A job that is ours until its lease ends. The token tells this claim from any other of the same job."""

    job: Job
    token: str
    timeout: float | None = None
    doomed: str | None = None
    """Set when the job must fail with this reason without being run."""
    run_seconds: float = 0.0
    """Filled in by the engine when the handler has ended."""


@record
class Completed:
    claim: Claim
    result: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler failed. The protocol's rules decide between retry and failure unless `final`; `delay`, if given,
    is used instead of the job's own backoff."""

    claim: Claim
    error: str
    stack: str = ""
    final: bool = False
    delay: float | None = None
    kind: str = ""
    """The name of the error's class; empty if no exception was raised."""


@dataclass(frozen=True, slots=True)
class Released:
    """Hand the job back as if it had not been claimed: no attempt is charged, it runs next."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Throttled(Released):
    """Handed back, and nothing is to be claimed for `delay` seconds. Only where the protocol can throttle."""

    delay: float


@dataclass(frozen=True, slots=True)
class Parked(Released):
    """Handed back until its children are done, or at once if none is pending. Only where the protocol has flows."""


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Put the job off by `delay` seconds without charging an attempt."""

    claim: Claim
    delay: float


Outcome = Completed | Failed | Released | Snoozed


class Verdict(Enum):
    """What became of an outcome in the store."""

    COMPLETED = "completed"
    FAILED = "failed"
    RETRIED = "retried"
    RELEASED = "released"
    SNOOZED = "snoozed"
    PARKED = "parked"
    LOST = "lost"
    """Refused: the claim was no longer ours (or the job is gone). Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The answer to `settle`: a verdict per outcome in order, and the jobs claimed."""

    verdicts: Sequence[Verdict] = ()
    claims: Sequence[Claim] = ()
    next_in: float | None = None
    """Fewer jobs than asked for: seconds until the next one is known to come due."""
    blocked_for: float = 0.0
    """Claim nothing for this many seconds, whatever arrives (a rate limit)."""


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
    rate: tuple[int, float] | None = None
    """At most this many jobs per that many seconds, over all workers of the queue."""
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
        """Give a wake-up that this worker has no free slot for to another worker. Also called when the worker is
        paused: whatever was taken in waits, and no claim has asked for, is left to others."""
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


class Acted(Enum):
    """What an action on one job came to."""

    DONE = "done"
    NOT_FOUND = "not found"
    WRONG_STATE = "wrong state"
    LOCKED = "locked"


class Backend(Protocol):
    """A store, reached through one protocol."""

    @property
    def capabilities(self) -> Capabilities: ...

    async def open(self) -> None:
        """Reach the store and check that it can serve this protocol. Idempotent."""
        ...

    async def close(self) -> None: ...

    def twin(self) -> Backend:
        """Another backend on the same store with connections of its own, for use in another event loop."""
        ...

    def check(self, queue: str, job: NewJob) -> bytes | None:
        """Raise InvalidOption for what this protocol does not allow. Touches nothing.

        A protocol that stores a job's options in a form of their own may return that form: it is counted into the
        job's size and handed to `add`.
        """
        ...

    async def register(self, queue: str) -> None:
        """Make the queue known to peers, where the protocol has such a record. Called once per Queue object."""
        ...

    async def add(self, queue: str, jobs: Sequence[PreparedJob], connection: Any = None) -> Sequence[Added]:
        """Store the jobs in order; one answer each. With a connection: inside the caller's transaction."""
        ...

    def check_worker(self, settings: ConsumerSettings) -> None:
        """Raise InvalidOption or NotSupported for what this protocol does not allow a worker. Touches nothing."""
        ...

    def consumer(self, settings: ConsumerSettings) -> Consumer: ...

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]: ...

    async def jobs(self, queue: str, state: State, limit: int, cursor: str | None) -> Page:
        """Jobs in a state in the order in which they would run (finished ones: newest first)."""
        ...

    async def counts(self, queue: str) -> Mapping[State, int]:
        """How many jobs are in each state that the protocol has."""
        ...

    async def pause(self, queue: str) -> None: ...

    async def resume(self, queue: str) -> None: ...

    async def paused(self, queue: str) -> bool: ...

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Run finished jobs again."""
        ...

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Make delayed jobs ready now."""
        ...

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Stop jobs from being run, keeping them in the cancelled state."""
        ...

    async def remove(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Delete jobs with everything that belongs to them; one that a worker runs is LOCKED."""
        ...

    async def drain(self, queue: str, delayed: bool) -> None:
        """Delete all jobs that wait (and the delayed ones, if asked)."""
        ...

    async def clean(self, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
        """Delete up to `limit` (0: all) jobs in the state for more than that many seconds; their ids."""
        ...

    async def obliterate(self, queue: str, force: bool) -> None:
        """Delete the queue and everything in it. WrongState if jobs are active, unless forced."""
        ...

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted: ...

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        """Append a line to the job's log, keeping the last `keep` (0: all)."""
        ...

    async def logs(self, queue: str, job_id: str) -> Sequence[str]: ...

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        """Create or replace the schedule of this key."""
        ...

    async def unschedule(self, queue: str, key: str) -> bool: ...

    async def schedules(self, queue: str) -> Sequence[Schedule]: ...

    async def cursor(self, queue: str) -> str:
        """The place in the event stream after everything that has happened."""
        ...

    def events(self, queue: str, since: str) -> AsyncIterator[Event]:
        """Events after the cursor, for ever. Reconnects by itself without losing its place."""
        ...

    async def workers(self, queue: str) -> Sequence[WorkerInfo]: ...
