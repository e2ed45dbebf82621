"""Where a queue's jobs are, in the order in which the pipeline reads them: those that will move before the rest."""

from __future__ import annotations

from dataclasses import dataclass

from jobwire.model import State


@dataclass(frozen=True)
class Place:
    """A list or sorted set of ids. `native` is the backend's word for the state of the jobs there."""

    name: str
    state: State
    native: str
    kind: str
    """`list`, or `set` for one with scores."""
    in_line: bool = False
    """Whether jobs run from here in the order of the place."""


PLACES = {
    place.name: place
    for place in (
        # While a queue is paused BullMQ 5 calls its waiting list `paused`; with both there, that one runs first. Jobs
        # with a priority come after the lists.
        Place("paused", State.WAITING, "paused", "list", in_line=True),
        Place("wait", State.WAITING, "waiting", "list", in_line=True),
        Place("prioritized", State.WAITING, "prioritized", "set", in_line=True),
        Place("delayed", State.DELAYED, "delayed", "set", in_line=True),
        Place("waiting-children", State.WAITING_CHILDREN, "waiting-children", "set"),
        Place("active", State.ACTIVE, "active", "list"),
        Place("completed", State.COMPLETED, "completed", "set"),
        Place("failed", State.FAILED, "failed", "set"),
    )
}
NOWHERE = Place("", State.WAITING, "unknown", "")
"""A job between two places for an instant, or left behind by a broken client."""
DUE_SCALE = 4096
"""`delayed` keeps due times as milliseconds times this, with a counter in the low digits."""
SIDES = (b":logs", b":dependencies", b":processed", b":failed", b":unsuccessful")
"""What a job has beside its hash, each under the job's key with this at its end."""
