"""The backend: a store that is used through one protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from jobwire.boundary.consumer import Consumer, ConsumerSettings
from jobwire.boundary.diagnosis import Diagnosis
from jobwire.boundary.features import Capabilities
from jobwire.boundary.jobs import Acted, Added, PreparedJob
from jobwire.boundary.parts import (
    Bulk,
    Cancels,
    Dependencies,
    Edits,
    EventControl,
    Events,
    Flows,
    KeyLimits,
    Logs,
    Pause,
    Progress,
    QueueLimits,
    QueueList,
    Routing,
    Schedules,
    Traces,
    Transactions,
    UniqueOwners,
    Workers,
)
from jobwire.model import Job, Page, State
from jobwire.options import NewJob


class Backend(Protocol):
    """A store that is used through one protocol. A part that the protocol lacks is None."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def flows(self) -> Flows | None: ...
    @property
    def dependencies(self) -> Dependencies | None: ...
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
    def key_limits(self) -> KeyLimits | None: ...
    @property
    def unique_owners(self) -> UniqueOwners | None: ...
    @property
    def traces(self) -> Traces | None: ...
    @property
    def routing(self) -> Routing | None: ...
    @property
    def transactions(self) -> Transactions | None: ...
    @property
    def workers(self) -> Workers | None: ...
    @property
    def queue_list(self) -> QueueList | None: ...
    @property
    def diagnosis(self) -> Diagnosis | None: ...

    async def open(self, *, look_only: bool = False) -> None:
        """Connects to the store and checks that it can serve this protocol. Does nothing if it is open already.

        It also makes what is missing: a schema, indexes, side data of this release. With `look_only` it changes nothing
        in the store, and does not check the version of the side data. Then `queue_list` and
        `diagnosis` can be used, and the rest if there is a queue."""
        ...

    async def close(self) -> None: ...

    def twin(self) -> Backend:
        """Returns another backend on the same store, with its own connections, for use in another event loop."""
        ...

    def check(self, queue: str, job: NewJob, data: bytes | None = None) -> bytes | None:
        """Raises InvalidOption for what this protocol does not allow. Does not call the store. `data` is the job's
        data in encoded form, if that has been made.

        A protocol that stores a job's options in encoded form may return them encoded. They then count towards the
        job's size and are passed to `add`.
        """
        ...

    async def register(self, queue: str) -> None:
        """Stores a record of the queue for peers, if the protocol has one. Called once per Queue object."""
        ...

    async def add(self, queue: str, jobs: Sequence[PreparedJob], transaction: Any = None) -> Sequence[Added]:
        """Stores the jobs in order. Returns one answer for each. With a transaction: inside it, the caller's own.

        Raises InvalidOption before anything is written, never after."""
        ...

    def check_worker(self, settings: ConsumerSettings) -> None:
        """Raises InvalidOption or NotSupported for what this protocol does not allow a worker. Does not call the
        store."""
        ...

    def consumer(self, settings: ConsumerSettings) -> Consumer: ...

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]: ...

    async def jobs(
        self, queue: str, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
    ) -> Page:
        """Returns jobs of one state in the order in which they would run (finished ones: newest first). With
        `reverse`, in the opposite order.

        They begin after `skip` jobs, or after the job that the cursor names. Callers never give both. A cursor works in
        both directions. Skipped jobs are not transferred.
        """
        ...

    async def counts(self, queue: str) -> Mapping[State, int]:
        """Returns the number of jobs in each state that the protocol has."""
        ...

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Makes finished jobs ready again."""
        ...

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Makes delayed jobs ready now."""
        ...

    async def remove(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Deletes jobs with everything that belongs to them. The answer for a job that a worker runs is LOCKED."""
        ...

    async def drain(self, queue: str, delayed: bool) -> None:
        """Deletes all waiting jobs, and with `delayed` also the delayed ones."""
        ...

    async def clean(self, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
        """Deletes up to `limit` (0: all) jobs that have been in the state for more than `older_than` seconds. Returns
        their ids."""
        ...

    async def obliterate(self, queue: str, force: bool) -> None:
        """Deletes the queue and everything in it. Raises WrongState if jobs are active, unless forced."""
        ...
