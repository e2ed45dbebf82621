"""The parts of a backend: operations that some protocols have beyond the core that all share.

Each part belongs to a feature. An attribute of the backend holds the part, or None: see `Backend`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from jobwire.boundary.claims import Claim
from jobwire.boundary.figures import Reading
from jobwire.boundary.jobs import Acted, Added, PreparedJob
from jobwire.model import Children, Event, Job, JobKey, Limits, Schedule, State, WorkerInfo
from jobwire.options import NewJob, NewSchedule
from jobwire.rate import Rate

RESULTS_KEY = "$results"
"""The key in the data of a job that waits for the results of others. Its value names those jobs."""
OnFailure = Literal["wait", "fail", "continue", "ignore", "remove"]


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A checked job of a flow, with the jobs that it waits for. `on_failure` concerns its parent in the tree."""

    queue: str
    job: PreparedJob
    on_failure: OnFailure = "wait"
    children: Sequence[FlowNode] = ()


def levels(roots: Sequence[FlowNode]) -> list[FlowNode]:
    """Returns all nodes, level by level from the roots down."""
    found, level = list(roots), list(roots)
    while level:
        level = [child for node in level for child in node.children]
        found += level
    return found


class Flows(Protocol):
    """Jobs that wait for other jobs, across queues."""

    def check_flow(self, queues: Sequence[str]) -> None:
        """Raises InvalidOption if jobs of these queues can't be in one flow. Does not call the store."""
        ...

    async def add_flow(self, roots: Sequence[FlowNode]) -> Sequence[Added]:
        """Stores whole trees, all or nothing. Returns one answer per job, in the order of `levels`."""
        ...

    async def children(self, queue: str, job_id: str) -> Children: ...

    async def children_of(self, keys: Sequence[JobKey], limit: int) -> Sequence[Sequence[JobKey]]:
        """Returns the children of each job: up to `limit` pending ones and up to `limit` finished ones."""
        ...

    async def remove_alone(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Deletes jobs as `Backend.remove` does, but not their children."""
        ...


class Dependencies(Protocol):
    """Jobs that run when other jobs have completed, and get their results."""

    def check_queues(self, queues: Sequence[str]) -> None:
        """Raises InvalidOption if jobs of these queues can't wait for each other. Does not call the store."""
        ...

    async def add_trees(self, roots: Sequence[FlowNode]) -> Sequence[Added]:
        """Stores whole trees, all or nothing. Each job waits for its children, and fails if one of them fails for good:
        their `on_failure` is fail. The data of each job that waits is an object with RESULTS_KEY, which shows that it
        is not a peer's own. Returns one answer per job, in the order of `levels`."""
        ...

    async def results(self, queue: str, job_id: str) -> Mapping[JobKey, Any]:
        """Returns the results of the jobs that this one has waited for, as far as they are in the store."""
        ...


class Edits(Protocol):
    """Changes to jobs that are in the store."""

    async def update_data(self, queue: str, job_id: str, data: bytes) -> Acted: ...

    async def change_priority(self, queue: str, job_id: str, priority: int, front: bool) -> Acted:
        """Gives a waiting job another priority. It runs as the last of that priority, or with `front` as the first."""
        ...

    async def change_delay(self, queue: str, job_id: str, delay: float) -> Acted:
        """Makes a delayed job due `delay` seconds from now."""
        ...

    async def clear_logs(self, queue: str, job_id: str, keep: int) -> Acted:
        """Deletes all but the last `keep` lines of the job's log."""
        ...

    async def retry_anew(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Makes finished jobs ready again, with all of their attempts."""
        ...


class Bulk(Protocol):
    """Reads and changes that concern all jobs of a queue. Each call makes one step of a change."""

    async def now(self) -> float:
        """Returns seconds since 1970 by the clock that gives finished jobs their times."""
        ...

    async def retry_all(self, queue: str, state: State, before: float, limit: int) -> int:
        """Makes up to `limit` jobs ready that finished in that state before `before`. Returns their number."""
        ...

    async def promote_all(self, queue: str, limit: int) -> int:
        """Makes up to `limit` delayed jobs ready. Returns their number."""
        ...

    async def counts_by_priority(self, queue: str, priorities: Sequence[int]) -> Mapping[int, int]:
        """Returns the number of waiting jobs of each priority. 0 stands for jobs without one."""
        ...


class Cancels(Protocol):
    """A state for jobs that will not be run."""

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Moves waiting jobs to the cancelled state, in which they are kept and not run."""
        ...


class Pause(Protocol):
    """Pausing a queue: no worker claims from it until it is resumed."""

    async def pause(self, queue: str) -> None: ...

    async def resume(self, queue: str) -> None: ...

    async def paused(self, queue: str) -> bool: ...


class Progress(Protocol):
    """The progress that handlers publish about a job."""

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted: ...


class Logs(Protocol):
    """Lines that handlers write about a job."""

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        """Appends a line to the job's log and deletes all but the last `keep` lines (0: deletes none)."""
        ...

    async def logs(self, queue: str, job_id: str, last: int = 0) -> Sequence[str]:
        """Returns the lines, oldest first: the newest `last` of them (0: all). Reads no others."""
        ...


class Schedules(Protocol):
    """Schedules of repeating jobs."""

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        """Creates the schedule of this key, or replaces it. Returns it as stored."""
        ...

    async def unschedule(self, queue: str, key: str) -> bool: ...

    async def schedules(self, queue: str) -> Sequence[Schedule]: ...

    async def search(self, queue: str, most: int) -> tuple[Sequence[Schedule], bool]:
        """Returns schedules, and True if these are all. A store that has no list of them looks at about `most` jobs."""
        ...

    def job_of(self, schedule: Schedule) -> NewJob:
        """Returns a job like those that the schedule makes, with their name, data and options. Raises InvalidOption if
        another program gave them options that jobwire can't express."""
        ...


class Events(Protocol):
    """The queue's event stream."""

    async def cursor(self, queue: str) -> str:
        """Returns the cursor of the stream's present end."""
        ...

    def events(self, queue: str, since: str) -> AsyncIterator[Event]:
        """Yields events after the cursor, without end. Reconnects by itself without losing its position."""
        ...


class EventControl(Protocol):
    """Reads the stream's past, writes to it, and limits its length."""

    async def last(self, queue: str, limit: int) -> Sequence[Event]:
        """Returns up to `limit` events that the stream holds, the newest ones, oldest first."""
        ...

    async def publish(self, queue: str, event: str, fields: Mapping[str, str]) -> str:
        """Adds an event. Returns its id."""
        ...

    async def trim_events(self, queue: str, keep: int) -> int:
        """Deletes all but about the last `keep` events. Returns the number of deleted ones."""
        ...

    async def limit_events(self, queue: str, keep: int) -> None:
        """Limits the stream to about `keep` events from now on."""
        ...


class QueueLimits(Protocol):
    """Limits that hold for all workers of a queue together."""

    async def limits(self, queue: str) -> Limits: ...

    async def limit_rate(self, queue: str, rate: Rate | None) -> None: ...

    async def limit_concurrency(self, queue: str, concurrency: int | None) -> None: ...

    async def throttle(self, queue: str, delay: float) -> None:
        """Stops workers that have a rate limit from starting jobs for `delay` seconds. 0 lets them go on at once."""
        ...


class UniqueOwners(Protocol):
    """The jobs that hold unique keys."""

    async def unique_owner(self, queue: str, key: str) -> str | None: ...

    async def release_unique(self, queue: str, key: str) -> bool:
        """Frees the key. Returns False if no job held it."""
        ...


class KeyLimits(Protocol):
    """Limits that hold for each key of jobs by itself, over all workers of the queue."""

    def job_options(self, key: str) -> Mapping[str, Any]:
        """Returns the native options of a job that counts for this key."""
        ...

    def worker_options(self, native: object | None, rate: Rate | None, running: int | None) -> object:
        """Returns a worker's native options with limits for each key: on starts in a period, and on jobs that run at a
        time."""
        ...


class Traces(Protocol):
    """Traces of producers, in a field of the job that the peer's telemetry reads."""

    def job_options(self, headers: Mapping[str, str]) -> Mapping[str, Any]:
        """Returns the native options of a job that belongs to the trace of these headers of OpenTelemetry."""
        ...


class Routing(Protocol):
    """Jobs that only some workers may run."""

    async def unroutable(self, queue: str, limit: int) -> Sequence[Job]:
        """Returns waiting jobs that no live worker may run."""
        ...


class Transactions(Protocol):
    """Transactions in which a handler's writes commit together with its job."""

    async def transaction(self, claim: Claim, *, blocking: bool) -> Any:
        """Returns the driver's connection for the claim's handler, the same one each time. It is in a transaction
        that commits when the claim is settled as completed, in one with it, and is rolled back otherwise."""
        ...


class Workers(Protocol):
    """Lists the workers that are connected to a queue, in any language."""

    async def workers(self, queue: str) -> Sequence[WorkerInfo]: ...

    async def counts(self, queues: Sequence[str]) -> Mapping[str, int]:
        """Returns the number of workers of each queue, in as many round trips for many queues as for one."""
        ...


class QueueList(Protocol):
    """Lists the queues of a store, and reads figures of many at once."""

    async def names(self) -> Sequence[str]:
        """Returns the names of all queues in the place that the URL names, sorted. Stores nothing."""
        ...

    async def search(self, cursor: str | None) -> tuple[Sequence[str], str | None]:
        """Returns some names and the cursor with which the next call goes on, None at the end. A name may come twice.
        Each call is short, however much is in the store."""
        ...

    async def has(self, queue: str) -> bool:
        """Returns True if there is such a queue. Does not read the others."""
        ...

    async def figures(self, queues: Sequence[str], most: int, since: datetime | None) -> Reading:
        """Returns figures of queues, in a few round trips for hundreds of them. Stores nothing.

        If a store has to count jobs one by one, it counts at most `most` of a queue in each state, and then returns how
        many came and went since `since`, the time of the last reading, as turnover. That too is limited: to ten times
        `most`."""
        ...

    async def forget(self, queue: str) -> None:
        """Deletes the store's record of a queue that is empty, if the protocol keeps one beyond `obliterate`."""
        ...
