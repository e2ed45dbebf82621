"""What some protocols can do beyond the boundary that all share.

Each facet belongs to a capability. A backend whose capability says so has the facet's methods besides those of
Backend; callers ask the capability first, then take the backend for the facet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from jobwire.backend import Acted, Added, Claim, PreparedJob
from jobwire.model import Children, Job, JobKey, Limits, State

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
    """Jobs that wait for other jobs, across queues. Capability `flows`."""

    def check_flow(self, queues: Sequence[str]) -> None:
        """Raise InvalidOption if jobs of these queues can't be in one flow. Touches nothing."""
        ...

    async def add_flow(self, roots: Sequence[FlowNode]) -> Sequence[Added]:
        """Store whole trees, all or nothing; one answer per job, in the order of `levels`."""
        ...

    async def children(self, queue: str, job_id: str) -> Children: ...

    async def children_of(self, keys: Sequence[JobKey], limit: int) -> Sequence[Sequence[JobKey]]:
        """For each job its children, pending and done, up to `limit` of each kind."""
        ...

    async def remove_alone(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        """As `remove`, without the children."""
        ...


class Edits(Protocol):
    """Changes to a job that is in the store. Capability `edits`, one method each."""

    async def update_data(self, queue: str, job_id: str, data: bytes) -> Acted: ...

    async def change_priority(self, queue: str, job_id: str, priority: int, front: bool) -> Acted:
        """A job that waits moves to its new place: to the end of its priority, or to its front."""
        ...

    async def change_delay(self, queue: str, job_id: str, delay: float) -> Acted:
        """A delayed job comes due that many seconds from now."""
        ...

    async def clear_logs(self, queue: str, job_id: str, keep: int) -> Acted:
        """Delete the job's log but for its last `keep` lines."""
        ...


class PriorityCounts(Protocol):
    """Waiting jobs by priority. Capability `priority_counts`."""

    async def counts_by_priority(self, queue: str, priorities: Sequence[int]) -> Mapping[int, int]:
        """How many jobs of each priority wait; 0: those without one."""
        ...


class Bulk(Protocol):
    """Moves of many jobs, a step per call. Capability `bulk`."""

    async def now(self) -> float:
        """Seconds since 1970 by the clock that finished jobs are stamped with."""
        ...

    async def retry_all(self, queue: str, state: State, before: float, limit: int) -> int:
        """Run again up to `limit` jobs that finished in that state before the moment; how many."""
        ...

    async def promote_all(self, queue: str, limit: int) -> int:
        """Make up to `limit` delayed jobs ready; how many."""
        ...


class RetriesAnew(Protocol):
    """Retries that forget the attempts made. Capability `retry_anew`."""

    async def retry_anew(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]: ...


class QueueLimits(Protocol):
    """Limits that the queue carries for all workers. Capabilities `global_rate`, `global_concurrency`, `throttle`."""

    async def limits(self, queue: str) -> Limits: ...

    async def limit_rate(self, queue: str, rate: tuple[int, float] | None) -> None: ...

    async def limit_concurrency(self, queue: str, concurrency: int | None) -> None: ...

    async def throttle(self, queue: str, delay: float) -> None:
        """Workers with a rate limit start nothing for that many seconds; 0 lets them go on at once."""
        ...


class EventControl(Protocol):
    """Writing to the event stream, and its length. Capability `custom_events`."""

    async def publish(self, queue: str, event: str, fields: Mapping[str, str]) -> str:
        """Add an event; its id."""
        ...

    async def trim_events(self, queue: str, keep: int) -> int:
        """Delete all but about the last `keep` events; how many went."""
        ...

    async def limit_events(self, queue: str, keep: int) -> None:
        """From now on the stream keeps about that many events."""
        ...


class UniqueOwners(Protocol):
    """Who holds a unique key. Capability `unique` with "owner"."""

    async def unique_owner(self, queue: str, key: str) -> str | None: ...

    async def release_unique(self, queue: str, key: str) -> bool:
        """Free the key whoever holds it; False if nobody did."""
        ...


class Routing(Protocol):
    """Jobs for some workers only. Capability `routing`."""

    async def unroutable(self, queue: str, limit: int) -> Sequence[Job]:
        """Waiting jobs that no live worker can take."""
        ...


class Transactions(Protocol):
    """Handlers' writes that commit with their job. Capability `transactional_settle`."""

    async def connection(self, claim: Claim, *, blocking: bool) -> Any:
        """The driver's connection for the claim's handler, the same one each time. Its transaction commits when the
        claim is settled as completed, in one with it, and is rolled back otherwise."""
        ...
