"""Jobs that are about to be stored, and the answers of a store."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from jobwire.model import AddStatus
from jobwire.options import NewJob


class PreparedJob(NamedTuple):
    """A checked job with its data encoded, and its options too, if the protocol's `check` has returned them encoded."""

    new: NewJob
    name: str
    data: bytes
    options: bytes | None = None


class Added(NamedTuple):
    """The answer to one added job. `id` is the new job's, or that of the existing job in its place."""

    id: str
    status: AddStatus = AddStatus.ADDED


class Acted(Enum):
    """The result of an action on one job."""

    DONE = "done"
    NOT_FOUND = "not found"
    WRONG_STATE = "wrong state"
    LOCKED = "locked"

    @property
    def reason(self) -> str:
        """The reason why nothing was done, in words for operators."""
        return _NOT_DONE[self]


_NOT_DONE = {
    Acted.DONE: "",
    Acted.NOT_FOUND: "not in the queue",
    Acted.WRONG_STATE: "not in a state that allows it",
    Acted.LOCKED: "running",
}
