"""The containers of a queue's jobs, in the order in which the pipeline reads them: those that jobs leave come first."""

from __future__ import annotations

from dataclasses import dataclass

from jobwire.model import State


@dataclass(frozen=True)
class Container:
    """A list or sorted set of ids. `native` is the backend's word for the state of the jobs there."""

    name: str
    state: State
    native: str
    kind: str
    """`list`, or `set` for one with scores."""
    in_order: bool = False
    """True if jobs run from here in the order of the container."""


CONTAINERS = {
    container.name: container
    for container in (
        # While a queue is paused BullMQ 5 calls its waiting list `paused`; if both exist, that one runs first. Jobs
        # with a priority come after the lists.
        Container("paused", State.WAITING, "paused", "list", in_order=True),
        Container("wait", State.WAITING, "waiting", "list", in_order=True),
        Container("prioritized", State.WAITING, "prioritized", "set", in_order=True),
        Container("delayed", State.DELAYED, "delayed", "set", in_order=True),
        Container("waiting-children", State.WAITING_CHILDREN, "waiting-children", "set"),
        Container("active", State.ACTIVE, "active", "list"),
        Container("completed", State.COMPLETED, "completed", "set"),
        Container("failed", State.FAILED, "failed", "set"),
    )
}
NOWHERE = Container("", State.WAITING, "unknown", "")
"""A job between two containers for an instant, or left behind by a broken client."""
DUE_SCALE = 4096
"""`delayed` keeps due times as milliseconds times this, with a counter in the low digits."""
SIDES = (b":logs", b":dependencies", b":processed", b":failed", b":unsuccessful")
"""The keys that a job has beside its hash, each under the job's key with this ending."""
