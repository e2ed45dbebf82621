"""The parts of a backend: what some protocols can do beyond the core that all share.

Each part belongs to a feature. A backend has the part, or None in its place; see `Backend`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from jobwire.boundary.claims import Claim
from jobwire.boundary.jobs import Acted, Added, PreparedJob
from jobwire.model import Children, Event, Job, JobKey, Limits, Schedule, State, WorkerInfo
from jobwire.options import NewSchedule
from jobwire.rate import Rate

OnFailure = Literal["wait", "fail", "continue", "ignore", "remove"]


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A checked job of a flow, with the jobs that it waits for. `on_failure` is for its parent in the tree."""

    queue: str
    job: PreparedJob
    on_failure: OnFailure = "wait"
    children: Sequence[FlowNode] = ()


def levels(roots: Sequence[FlowNode]) -> list[FlowNode]:
    """All nodes, level by level from the roots down."""
    found, level = list(roots), list(roots)
    while level:
        level = [child for node in level for child in node.children]
        found += level
    return found


class Flows(Protocol):
    """Jobs that wait for other jobs, across queues."""

    def check_flow(self, queues: Sequence[str]) -> None:
        """Raises InvalidOption if jobs of these queues can't be in one flow. Touches nothing."""
        ...

    async def add_flow(self, roots: Sequence[FlowNode]) -> Sequence[Added]:
        """Stores whole trees, all or nothing. Returns one answer per job, in the order of `levels`."""
        ...

    async def children(self, queue: str, job_id: str) -> Children: ...

    async def children_of(self, keys: Sequence[JobKey], limit: int) -> Sequence[Sequence[JobKey]]:
        """Returns for each job its children, pending and done, up to `limit` of each kind."""
        ...

    async def remove_alone(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """As `Backend.remove`, without the children."""
        ...


class Edits(Protocol):
    """Changes to a job that is in the store."""

    async def update_data(self, queue: str, job_id: str, data: bytes) -> Acted: ...

    async def change_priority(self, queue: str, job_id: str, priority: int, front: bool) -> Acted:
        """Moves a waiting job to the end of its new priority, or to its front."""
        ...

    async def change_delay(self, queue: str, job_id: str, delay: float) -> Acted:
        """Has a delayed job come due that many seconds from now."""
        ...

    async def clear_logs(self, queue: str, job_id: str, keep: int) -> Acted:
        """Deletes the job's log but for its last `keep` lines."""
        ...

    async def retry_anew(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Runs finished jobs again, with all of their attempts."""
        ...


class Bulk(Protocol):
    """Questions and changes that concern all jobs of a queue. Changes are made a step per call."""

    async def now(self) -> float:
        """Returns seconds since 1970 by the clock that finished jobs are stamped with."""
        ...

    async def retry_all(self, queue: str, state: State, before: float, limit: int) -> int:
        """Reruns up to `limit` jobs that finished in that state before the moment. Returns how many."""
        ...

    async def promote_all(self, queue: str, limit: int) -> int:
        """Makes up to `limit` delayed jobs ready. Returns how many."""
        ...

    async def counts_by_priority(self, queue: str, priorities: Sequence[int]) -> Mapping[int, int]:
        """Returns how many jobs of each priority wait; 0 stands for those without one."""
        ...


class Cancels(Protocol):
    """A state for jobs that are not to be run."""

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """Stops waiting jobs from being run, keeping them in the cancelled state."""
        ...


class Pause(Protocol):
    """A stop of all claims from a queue."""

    async def pause(self, queue: str) -> None: ...

    async def resume(self, queue: str) -> None: ...

    async def paused(self, queue: str) -> bool: ...


class Progress(Protocol):
    """How far a job is."""

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted: ...


class Logs(Protocol):
    """Lines that handlers write about a job."""

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        """Appends a line to the job's log, keeping the last `keep` (0: all)."""
        ...

    async def logs(self, queue: str, job_id: str) -> Sequence[str]: ...


class Schedules(Protocol):
    """Repeating jobs."""

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        """Creates or replaces the schedule of this key."""
        ...

    async def unschedule(self, queue: str, key: str) -> bool: ...

    async def schedules(self, queue: str) -> Sequence[Schedule]: ...


class Events(Protocol):
    """The queue's event stream."""

    async def cursor(self, queue: str) -> str:
        """Returns the position in the stream after everything that has happened."""
        ...

    def events(self, queue: str, since: str) -> AsyncIterator[Event]:
        """Yields events after the cursor, without end. Reconnects by itself without losing its position."""
        ...


class EventControl(Protocol):
    """Writing to the event stream, and its length."""

    async def publish(self, queue: str, event: str, fields: Mapping[str, str]) -> str:
        """Adds an event. Returns its id."""
        ...

    async def trim_events(self, queue: str, keep: int) -> int:
        """Deletes all but about the last `keep` events. Returns how many it deleted."""
        ...

    async def limit_events(self, queue: str, keep: int) -> None:
        """From now on the stream keeps about that many events."""
        ...


class QueueLimits(Protocol):
    """Limits that hold for all workers of a queue together."""

    async def limits(self, queue: str) -> Limits: ...

    async def limit_rate(self, queue: str, rate: Rate | None) -> None: ...

    async def limit_concurrency(self, queue: str, concurrency: int | None) -> None: ...

    async def throttle(self, queue: str, delay: float) -> None:
        """Has workers with a rate limit start nothing for that many seconds; 0 lets them go on at once."""
        ...


class UniqueOwners(Protocol):
    """The jobs that hold unique keys."""

    async def unique_owner(self, queue: str, key: str) -> str | None: ...

    async def release_unique(self, queue: str, key: str) -> bool:
        """Frees the key. Returns False if no job held it."""
        ...


class Routing(Protocol):
    """Jobs for some workers only."""

    async def unroutable(self, queue: str, limit: int) -> Sequence[Job]:
        """Returns waiting jobs that no live worker can take."""
        ...


class Transactions(Protocol):
    """Handlers' writes that commit with their job."""

    async def transaction(self, claim: Claim, *, blocking: bool) -> Any:
        """Returns the driver's connection for the claim's handler, the same one each time. It is in a transaction
        that commits when the claim is settled as completed, in one with it, and is rolled back otherwise."""
        ...


class Workers(Protocol):
    """The workers that are connected to a queue, whatever language they are written in."""

    async def workers(self, queue: str) -> Sequence[WorkerInfo]: ...
