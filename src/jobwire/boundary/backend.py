"""The backend: a store that is reached through one protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from jobwire.boundary.consumer import Consumer, ConsumerSettings
from jobwire.boundary.features import Capabilities
from jobwire.boundary.jobs import Acted, Added, PreparedJob
from jobwire.boundary.parts import (
    Bulk,
    Cancels,
    Edits,
    EventControl,
    Events,
    Flows,
    Logs,
    Pause,
    Progress,
    QueueLimits,
    Routing,
    Schedules,
    Transactions,
    UniqueOwners,
    Workers,
)
from jobwire.model import Job, Page, State
from jobwire.options import NewJob


class Backend(Protocol):
    """A store, reached through one protocol."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def flows(self) -> Flows | None: ...
    @property
    def edits(self) -> Edits | None: ...
    @property
    def bulk(self) -> Bulk | None: ...
    @property
    def cancels(self) -> Cancels | None: ...
    @property
    def pause(self) -> Pause | None: ...
    @property
    def progress(self) -> Progress | None: ...
    @property
    def logs(self) -> Logs | None: ...
    @property
    def schedules(self) -> Schedules | None: ...
    @property
    def events(self) -> Events | None: ...
    @property
    def event_control(self) -> EventControl | None: ...
    @property
    def limits(self) -> QueueLimits | None: ...
    @property
    def unique_owners(self) -> UniqueOwners | None: ...
    @property
    def routing(self) -> Routing | None: ...
    @property
    def transactions(self) -> Transactions | None: ...
    @property
    def workers(self) -> Workers | None: ...

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

    async def add(self, queue: str, jobs: Sequence[PreparedJob], transaction: Any = None) -> Sequence[Added]:
        """Store the jobs in order; one answer each. With a transaction: inside it, the caller's own.

        Raises InvalidOption before anything is written, never after."""
        ...

    def check_worker(self, settings: ConsumerSettings) -> None:
        """Raise InvalidOption or NotSupported for what this protocol does not allow a worker. Touches nothing."""
        ...

    def consumer(self, settings: ConsumerSettings) -> Consumer: ...

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]: ...

    async def jobs(
        self, queue: str, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
    ) -> Page:
        """Returns jobs in a state in the order in which they would run (finished ones: newest first), or in the
        opposite one.

        They begin after `skip` jobs, or after the job that the cursor names; never both. A cursor of either direction
        works in the other, too. What is skipped is not transferred.
        """
        ...

    async def counts(self, queue: str) -> Mapping[State, int]:
        """How many jobs are in each state that the protocol has."""
        ...

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Run finished jobs again."""
        ...

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Make delayed jobs ready now."""
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
