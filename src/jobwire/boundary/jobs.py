"""Jobs on their way into a store, and what a store answers."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from jobwire.model import AddStatus
from jobwire.options import NewJob


class PreparedJob(NamedTuple):
    """A checked job with its data encoded once; its options too, if the protocol keeps them in a form of their own."""

    new: NewJob
    name: str
    data: bytes
    options: bytes | None = None


class Added(NamedTuple):
    """The id of the job that now stands for the request, and whether it is a new one."""

    id: str
    status: AddStatus = AddStatus.ADDED


class Acted(Enum):
    """What an action on one job came to."""

    DONE = "done"
    NOT_FOUND = "not found"
    WRONG_STATE = "wrong state"
    LOCKED = "locked"
