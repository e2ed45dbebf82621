"""Where the jobs of one type are.

The protocol's own lists hold all types together. The backend keeps an index of each type beside them, and scripts that
bring it in line with what peers did; the pipeline reads through the same index. What it can't know of is a job that a
peer added and finished before any jobwire process looked: nothing but its own keys tells of that one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobwire.backends.bridgemq.healing import READERS_STEPS
from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.redisio.scripts import load
from jobwire.model import State
from jobwire.pipeline.stores.redisio.connection import Link
from jobwire.pipeline.stores.redisio.partitions import Bound, members

BACKEND = "jobwire.backends.bridgemq"
_STEP = 2_000


@dataclass(frozen=True)
class Place:
    """A part of the index: a sorted set of ids, but for `claims`, a hash of the running jobs."""

    name: str
    state: State
    native: str
    """The protocol's word for jobs there."""
    in_line: bool = False
    """Whether jobs run from here in the order of the place."""


PLACES = {
    place.name: place
    for place in (
        Place("type", State.WAITING, "waiting", in_line=True),
        Place("delayed", State.DELAYED, "delayed", in_line=True),
        Place("claims", State.ACTIVE, "active"),
        Place("completed", State.COMPLETED, "completed"),
        Place("dead", State.FAILED, "dead"),
        # Jobs whose data nobody can read have no type: they are shown to whoever asks.
        Place("unreadable", State.FAILED, "dead"),
    )
}


class Index:
    """The jobs of one type."""

    def __init__(self, link: Link, keys: Keys, kind: str) -> None:
        self.link = link
        self.keys = keys
        self.kind = kind

    def key(self, place: str) -> str:
        if place == "unreadable":
            return f"{self.keys.base}x:dead:"
        return f"{self.keys.base}x:{place}:{self.kind}"

    def types(self) -> Sequence[str]:
        self.heal()
        found: list[bytes] = self.link.call("SMEMBERS", f"{self.keys.base}x:types")
        return sorted(name.decode(errors="replace") for name in found if name)

    def heal(self) -> None:
        """Take notice of what peers did, as the backend does before it reads."""
        script = load(BACKEND, "heal")
        reached: Sequence[int] = (0, 0, 0)
        for _ in range(READERS_STEPS):
            more, *reached = self.link.run(script, self.keys.base, [int(time.time() * 1000), *reached])
            if not more:
                return

    def claims(self) -> dict[bytes, bytes]:
        """The running jobs, each with its record: token, start, stalls allowed, worker."""
        flat: list[bytes] = self.link.call("HGETALL", self.key("claims"))
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def members(self, place: str, low: Bound, high: Bound) -> Iterator[list[Bound]]:
        """Ids and scores of a place that is no hash."""
        return members(self.link, self.key(place), low, high, _STEP)
