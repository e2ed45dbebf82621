"""Cuts containers of jobs into balanced partitions, and pages through sorted sets while others change them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jobwire.pipeline.stores.redisio.connection import Command, RedisConnection


@dataclass(frozen=True)
class Cut:
    """Jobs `start` to `stop` of a container, counted from 0."""

    container: str
    start: int
    stop: int


def cut(sizes: Sequence[tuple[str, int]], parts: int) -> list[list[Cut]]:
    """Cuts the containers, in their order, into about `parts` partitions of equal size; one may span containers.

    >>> [[(one.container, one.start, one.stop) for one in part] for part in cut([("a", 5), ("b", 3)], 2)]
    [[('a', 0, 4)], [('a', 4, 5), ('b', 0, 3)]]
    """
    total = sum(size for _, size in sizes)
    if not total:
        return []
    share = -(-total // max(1, parts))
    slices: list[list[Cut]] = [[]]
    room = share
    for container, size in sizes:
        start = 0
        while start < size:
            if not room:
                slices.append([])
                room = share
            taken = min(room, size - start)
            slices[-1].append(Cut(container, start, start + taken))
            start += taken
            room -= taken
    return slices


class Bound(NamedTuple):
    """A position in a sorted set, ordered by score, and by id among equal scores."""

    score: bytes
    id: bytes = b""

    @property
    def order(self) -> tuple[float, bytes]:
        return float(self.score), self.id


BEGINNING, END = Bound(b"-inf"), Bound(b"+inf", b"\xff" * 8)


def members(connection: RedisConnection, key: str, low: Bound, high: Bound, step: int) -> Iterator[list[Bound]]:
    """Yields pages of the set from the one bound to before the other.

    A page continues from the id that the last one ended with, not from a rank: ids that leave or join before it shift
    nothing, and an id that stays is never left out.
    """
    anchor, floor, end = low, low.order, high.order
    has_floor = False
    while True:
        found = _page(connection, key, anchor, step)
        start = (bisect_right if has_floor else bisect_left)(found, floor, key=_order)
        stop = bisect_left(found, end, key=_order)
        if start < stop:
            yield found[start:stop]
        if stop < len(found) or len(found) < step:
            return
        anchor = found[-1]
        # If the last anchor was removed, the page may lie before what has been read.
        if anchor.order >= floor:
            floor, has_floor = anchor.order, True


def _page(connection: RedisConnection, key: str, low: Bound, wanted: int) -> list[Bound]:
    """Returns at least what follows the bound, and perhaps some that precede it."""
    if low.id:
        rank = connection.call("ZRANK", key, low.id)
        found = (
            _bounds(connection.call("ZRANGE", key, rank, rank + wanted - 1, "WITHSCORES")) if rank is not None else []
        )
        if found and found[0] == low:
            return found
    return _bounds(connection.call("ZRANGEBYSCORE", key, low.score, "+inf", "WITHSCORES", "LIMIT", 0, wanted))


def _bounds(flat: list[bytes]) -> list[Bound]:
    pairs = iter(flat)
    return [Bound(score, member) for member, score in zip(pairs, pairs, strict=True)]


def _order(one: Bound) -> tuple[float, bytes]:
    return one.order


def boundaries(
    connection: RedisConnection, questions: Sequence[tuple[str, Bound, Bound, Cut]], sizes: Mapping[str, int]
) -> list[tuple[bytes, Bound, Bound]]:
    """Returns, for each key with the bounds of what is wanted of it and a cut of that, the cut's first id and its
    bounds."""
    commands: list[Command] = [
        ("ZRANGEBYSCORE", key, low.score, below(high), "WITHSCORES", "LIMIT", rank, 1)
        for key, low, high, one in questions
        for rank in (one.start, one.stop)
    ]
    answers = iter([connection.accepted(answer) for answer in (connection.calls(commands) if commands else ())])
    found: list[tuple[bytes, Bound, Bound]] = []
    for _, low, high, one in questions:
        start, stop = _bounds(next(answers)), _bounds(next(answers))
        # The outer ends stay open, for ids that join there during the read.
        lower = start[0] if one.start and start else low
        upper = stop[0] if one.stop < sizes[one.container] and stop else high
        found.append((start[0].id if start else b"", lower, upper))
    return found


def below(high: Bound) -> bytes:
    """Returns a bound without an id as the commands of sorted sets take it."""
    return b"+inf" if high == END else b"(" + high.score
