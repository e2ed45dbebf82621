"""Divides a job type into partitions: ranges of the index, cut by rank so that partitions are equal.

The running jobs are few and read whole. Partitions are read at different times, so a job may pass from one that is
still to be read into one that has been read. A partition whose first job is gone therefore ends with the running jobs
and those that finished since the plan was made, so that jobs that moved forward are found. A job that failed during the
read and waits for its next attempt in a partition that was read before is left to the next read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.bridgemq.index import CONTAINERS, Container, Index
from jobwire.pipeline.stores.redisio.connection import Command
from jobwire.pipeline.stores.redisio.fingerprint import digest
from jobwire.pipeline.stores.redisio.partitions import BEGINNING, END, Bound, Cut, boundaries, cut


@dataclass(frozen=True)
class Range:
    """Jobs of a container from one bound to before another; `near` is the first of them and had this rank. The running
    jobs are one range, which is read whole."""

    container: str
    low: Bound = BEGINNING
    high: Bound = END
    near: bytes = b""
    rank: int = 0


@dataclass(frozen=True)
class Part:
    """The part of a queue that one process reads, in this order."""

    ranges: tuple[Range, ...]
    since_ms: int
    """The server's clock when the plan was made."""


def plan(index: Index, wanted: Wanted, parts: int, finished_from_ms: int | None = None) -> list[Part]:
    """Returns the partitions. `finished_from_ms` leaves out what finished before, by the index."""
    index.reindex()
    containers = [container for container in CONTAINERS.values() if wanted.state(container.state)]
    now = index.connection.now_ms()
    counts = index.connection.calls([_size(index, container, finished_from_ms) for container in containers])
    sizes: dict[str, int] = {
        container.name: index.connection.accepted(count) for container, count in zip(containers, counts, strict=True)
    }
    slices = cut(list(sizes.items()), parts)
    cuts = [one for part in slices for one in part if one.container != "claims" or not one.start]
    ranges = dict(zip(cuts, _resolved(index, cuts, sizes, finished_from_ms), strict=True))
    planned = [tuple(ranges[one] for one in part if one in ranges) for part in slices]
    return [Part(part, now) for part in planned if part]


def sizes(indexes: Sequence[Index], wanted: Wanted) -> dict[str, int]:
    """Returns how many of the jobs that are wanted each type has, in one round trip."""
    containers = [container for container in CONTAINERS.values() if wanted.state(container.state)]
    since, connection = finished_from(wanted), indexes[0].connection
    replies = iter(connection.calls([_size(index, container, since) for index in indexes for container in containers]))
    return {index.kind: sum(connection.accepted(next(replies)) for _ in containers) for index in indexes}


def finished_from(wanted: Wanted) -> int | None:
    """Returns the time before which finished jobs can be left out: their time in the index is that of their end, or
    later."""
    return None if wanted.finished_from is None else math.floor(wanted.finished_from.timestamp() * 1000)


def running(index: Index) -> bytes:
    """Returns a text that differs when other jobs run."""
    ids: list[bytes] = index.connection.call("HKEYS", index.key("claims"))
    return digest(sorted(ids)).encode()


def _low(container: Container, finished_from_ms: int | None) -> Bound:
    return Bound(b"%d" % finished_from_ms) if finished_from_ms is not None and container.state.finished else BEGINNING


def _size(index: Index, container: Container, finished_from_ms: int | None) -> Command:
    key = index.key(container.name)
    if container.name == "claims":
        return ("HLEN", key)
    return ("ZCOUNT", key, _low(container, finished_from_ms).score, "+inf")


def _resolved(index: Index, cuts: Sequence[Cut], sizes: dict[str, int], finished_from_ms: int | None) -> list[Range]:
    """Returns each cut with the bounds that mark its ends."""
    sets = [one for one in cuts if one.container != "claims"]
    questions = [
        (index.key(one.container), _low(CONTAINERS[one.container], finished_from_ms), END, one) for one in sets
    ]
    bounded = iter(boundaries(index.connection, questions, sizes))
    ranges: list[Range] = []
    for one in cuts:
        if one.container == "claims":
            ranges.append(Range("claims", near=running(index)))
        else:
            near, low, high = next(bounded)
            ranges.append(Range(one.container, low, high, near, one.start))
    return ranges
