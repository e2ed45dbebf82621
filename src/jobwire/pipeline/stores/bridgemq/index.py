"""The index of the jobs of one type.

The protocol's own lists hold all types together. The backend keeps an index of each type beside them, and scripts that
update it with what peers did; the pipeline reads through the same index. It lacks jobs that a peer added and finished
before any jobwire process looked: only their own keys exist.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.bridgemq.upkeep.reindex import READERS_STEPS
from jobwire.backends.redisio.scripts import load
from jobwire.model import State
from jobwire.pipeline.stores.redisio.connection import RedisConnection
from jobwire.pipeline.stores.redisio.partitions import Bound, members

BACKEND = "jobwire.backends.bridgemq"
_STEP = 2_000


@dataclass(frozen=True)
class Container:
    """A part of the index: a sorted set of ids, except `claims`, a hash of the running jobs."""

    name: str
    state: State
    native: str
    """The protocol's word for jobs in this container."""
    in_order: bool = False
    """True if jobs run from here in the order of the container."""


CONTAINERS = {
    container.name: container
    for container in (
        Container("type", State.WAITING, "waiting", in_order=True),
        Container("delayed", State.DELAYED, "delayed", in_order=True),
        Container("claims", State.ACTIVE, "active"),
        Container("completed", State.COMPLETED, "completed"),
        Container("dead", State.FAILED, "dead"),
        # Jobs whose data can't be read have no type: every queue shows them.
        Container("unreadable", State.FAILED, "dead"),
    )
}


@dataclass
class Reindexed:
    """A note that readers of many types share: the index is recent enough for all of them."""

    lasts: bool = False


class Index:
    """The jobs of one type."""

    def __init__(self, connection: RedisConnection, keys: Keys, kind: str, indexed: Reindexed | None = None) -> None:
        self.connection = connection
        self.keys = keys
        self.kind = kind
        self._indexed = indexed or Reindexed()

    def key(self, container: str) -> str:
        if container == "unreadable":
            return f"{self.keys.base}x:dead:"
        return f"{self.keys.base}x:{container}:{self.kind}"

    def types(self) -> Sequence[str]:
        self.reindex()
        found: list[bytes] = self.connection.call("SMEMBERS", f"{self.keys.base}x:types")
        return sorted(name.decode(errors="replace") for name in found if name)

    def reindex(self) -> None:
        """Updates the index with what peers did, as the backend does before it reads. It is one index for all types."""
        if self._indexed.lasts:
            return
        script = load(BACKEND, "reindex")
        reached: Sequence[int] = (0, 0, 0)
        for _ in range(READERS_STEPS):
            more, *reached = self.connection.run(script, self.keys.base, [int(time.time() * 1000), *reached])
            if not more:
                return

    def claims(self) -> dict[bytes, bytes]:
        """Returns the running jobs, each with its record: token, start, stalls allowed, worker."""
        flat: list[bytes] = self.connection.call("HGETALL", self.key("claims"))
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def members(self, container: str, low: Bound, high: Bound) -> Iterator[list[Bound]]:
        """Yields ids and scores of a container that is not a hash."""
        return members(self.connection, self.key(container), low, high, _STEP)
