"""Divides a queue into partitions that several processes read at once while its jobs move.

Ids are too many for a plan, and positions shift. So a partition of a sorted set is a range of scores and ids, cut by
rank so that partitions are equal. A partition of a list is named by the ids at its two ends, which are looked up when
it is read. Only `active`, which is short and changes everywhere, is read whole.

Partitions are read at different times, so a job may pass from one that is still to be read into one that has been read.
Each plan therefore records the newest event of its moment, and each partition ends by reading what has moved since: see
`jobs.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jobwire.backends.bullmq.keys import Keys
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.bullmq.containers import CONTAINERS, Container
from jobwire.pipeline.stores.redisio.connection import Command, RedisConnection
from jobwire.pipeline.stores.redisio.partitions import BEGINNING, END, Bound, Cut, below, boundaries, cut

NO_EVENT = "0-0"
"""An id before all events."""


@dataclass(frozen=True)
class Moment:
    """The moment at which a plan was made: the newest event of the queue, and the server's clock in milliseconds."""

    event: str
    ms: int


@dataclass(frozen=True)
class ListRange:
    """Jobs of a list between `near`, which runs first of them, and `far`, which had the index `last` from that end."""

    container: str
    near: bytes
    far: bytes
    last: int
    ahead: int
    """Jobs of other containers that run before those of this one."""


@dataclass(frozen=True)
class SetRange:
    """Jobs of a sorted set from one bound to before another; `near` is the first of them and had this rank."""

    container: str
    low: Bound
    high: Bound
    near: bytes
    rank: int
    ahead: int


@dataclass(frozen=True)
class Whole:
    """All jobs of a short list."""

    container: str


Range = ListRange | SetRange | Whole


@dataclass(frozen=True)
class Part:
    """The part of a queue that one process reads, in this order."""

    ranges: tuple[Range, ...]
    since: Moment
    chases: bool
    """True if jobs may leave these ranges for others that are wanted too."""


def plan(connection: RedisConnection, keys: Keys, wanted: Wanted, parts: int) -> list[Part]:
    containers = [container for container in CONTAINERS.values() if wanted.state(container.state)]
    sizes = [_size(keys, container, wanted) for container in containers]
    clock, newest, *counts = connection.together(("TIME",), ("XREVRANGE", keys.events, "+", "-", "COUNT", 1), *sizes)
    since = Moment(newest[0][0].decode() if newest else NO_EVENT, int(clock[0]) * 1000 + int(clock[1]) // 1000)
    found: dict[str, int] = {
        container.name: connection.accepted(count) for container, count in zip(containers, counts, strict=True)
    }
    slices = cut(list(found.items()), parts)
    cuts = [one for part in slices for one in part if one.container != "active" or not one.start]
    ranges = dict(zip(cuts, _resolved(connection, keys, cuts, found, wanted), strict=True))
    chases = any(not container.state.finished for container in containers)
    planned = [tuple(ranges[one] for one in part if one in ranges) for part in slices]
    return [Part(part, since, chases) for part in planned if part]


def sizes(connection: RedisConnection, queues: Sequence[Keys], wanted: Wanted) -> dict[str, int]:
    """Returns how many of the jobs that are wanted each queue holds, in one round trip."""
    containers = [container for container in CONTAINERS.values() if wanted.state(container.state)]
    replies = iter(connection.calls([_size(keys, container, wanted) for keys in queues for container in containers]))
    return {keys.queue: sum(connection.accepted(next(replies)) for _ in containers) for keys in queues}


def _size(keys: Keys, container: Container, wanted: Wanted) -> Command:
    key = keys.base + container.name
    if container.kind == "list":
        return ("LLEN", key)
    low, high = bounds(container, wanted)
    return ("ZCOUNT", key, low.score, below(high))


def bounds(container: Container, wanted: Wanted) -> tuple[Bound, Bound]:
    """Returns the bounds of what is wanted of a sorted set: the scores of finished jobs are the times at which they
    finished."""
    first, before = wanted.finished_from, wanted.finished_before
    if not container.state.finished:
        return BEGINNING, END
    low = Bound(b"%d" % math.floor(first.timestamp() * 1000)) if first else BEGINNING
    return low, Bound(b"%d" % math.ceil(before.timestamp() * 1000)) if before else END


def _resolved(
    connection: RedisConnection, keys: Keys, cuts: Sequence[Cut], sizes: dict[str, int], wanted: Wanted
) -> list[Range]:
    """Returns each cut with the ids that mark its ends."""
    lists = [one for one in cuts if CONTAINERS[one.container].kind == "list"]
    commands: list[Command] = [
        ("LINDEX", keys.base + one.container, index) for one in lists for index in (-one.start - 1, -one.stop)
    ]
    indexed = iter(connection.calls(commands) if commands else ())
    sets = [one for one in cuts if CONTAINERS[one.container].kind == "set"]
    questions = [(keys.base + one.container, *bounds(CONTAINERS[one.container], wanted), one) for one in sets]
    bounded = iter(boundaries(connection, questions, sizes))
    ahead = {"wait": sizes.get("paused", 0), "prioritized": sizes.get("paused", 0) + sizes.get("wait", 0)}
    ranges: list[Range] = []
    for one in cuts:
        if CONTAINERS[one.container].kind == "set":
            near, low, high = next(bounded)
            ranges.append(SetRange(one.container, low, high, near, one.start, ahead.get(one.container, 0)))
        else:
            near, far = next(indexed) or b"", next(indexed) or b""
            whole = one.container == "active"
            of_list = ListRange(one.container, near, far, one.stop - 1, ahead.get(one.container, 0))
            ranges.append(Whole("active") if whole else of_list)
    return ranges
