"""Plans the read of many queues: how far each can be read, and in which partitions.

A queue alone is planned by its store. Of many queues, a small one is not worth a task, and a large one is worth several
whatever number of others there are. So the jobs of all queues are counted first, each queue is divided by its share of
them, and what is small is put together. Queues are planned in several threads, each with one connection for all of its
queues. Where a store reads many queues as easily as one (`StoreConnection.merges`), those that are read from the same
offset are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark.sql.datasource import InputPartition

from jobwire.pipeline.stores.boundary import Offset, StoreConnection, Wanted

_THREADS = 8
_WORTH = 50
"""Queues that are worth a thread, and a connection, of their own."""

Connected = Callable[[], AbstractContextManager[StoreConnection]]
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Piece:
    """A part of a queue, or of several that are read as one, as the store has planned it."""

    queues: tuple[str, ...]
    part: Any
    rows: int
    """About how many it has."""


class Partition(InputPartition):
    """The pieces that one task reads, one after the other."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__(tuple(pieces))


def as_partitions(groups: Iterable[Sequence[Piece]]) -> list[InputPartition]:
    return [Partition(group) for group in groups]


def pieces_of(partition: InputPartition) -> Sequence[Piece]:
    """Returns the pieces of a partition. Spark has one without a value for an empty plan."""
    return partition.value or ()


def plan_jobs(connected: Connected, queues: Sequence[str], wanted: Wanted, parts: int) -> list[list[Piece]]:
    """Returns about `parts` groups of pieces that together hold every job of the queues."""
    if not queues:
        return []
    with connected() as connection:
        if connection.merges or len(queues) == 1:
            found = connection.queue(queues).plan_jobs(wanted, parts)
            return [[Piece(tuple(queues), part, 1)] for part in found]
        sizes = connection.sizes(queues, wanted)
    share = max(1, -(-sum(sizes.values()) // parts))

    def plan(connection: StoreConnection, queues: tuple[str, ...]) -> list[Piece]:
        size = sizes[queues[0]]
        found = connection.queue(queues).plan_jobs(wanted, -(-size // share))
        return [Piece(queues, part, -(-size // len(found))) for part in found]

    filled = [(queue,) for queue in queues if sizes.get(queue)]
    return grouped([piece for pieces in _for_each(connected, plan, filled) for piece in pieces], parts)


def grouped(pieces: Sequence[Piece], parts: int) -> list[list[Piece]]:
    """Puts neighbouring pieces together so that there are about `parts` groups of about the same number of rows.

    >>> small, large = Piece(("a",), None, 10), Piece(("b",), None, 80)
    >>> [len(group) for group in grouped([small, small, large, small, small], 3)]
    [2, 1, 2]
    """
    share = -(-sum(piece.rows for piece in pieces) // parts)
    groups: list[list[Piece]] = []
    room = 0
    for piece in pieces:
        if not groups or room < piece.rows:
            groups.append([])
            room = share
        groups[-1].append(piece)
        room -= piece.rows
    return groups


def latest_offsets(
    connected: Connected,
    starts: Mapping[str, Offset | None],
    rows: int | None = None,
    targets: Mapping[str, Offset] | None = None,
) -> dict[str, Any]:
    """Returns how far each queue can be read from its start: to its newest event, to about `rows` events, and no
    further than its target. None stands for a start before all events."""
    bounds = targets or {}

    def latest(connection: StoreConnection, queues: tuple[str, ...]) -> Offset:
        store, start, target = connection.queue(queues), starts[queues[0]], bounds.get(queues[0])
        begin = store.first_offset() if start is None else start
        if target is not None and store.passed(begin, target):
            return begin
        newest = store.latest_offset(begin, rows)
        return target if target is not None and store.passed(newest, target) else newest

    alike = _alike(connected, {queue: (start, bounds.get(queue)) for queue, start in starts.items()})
    found = zip(alike, _for_each(connected, latest, alike), strict=True)
    return {queue: dict(offset) for queues, offset in found for queue in queues}


def plan_events(
    connected: Connected, spans: Mapping[str, tuple[Offset | None, Offset]], parts: int
) -> list[list[Piece]]:
    """Returns about `parts` groups of pieces that together hold the events of each queue from one offset to another;
    more if there are large pieces."""

    def plan(connection: StoreConnection, queues: tuple[str, ...]) -> list[Piece]:
        store, (start, end) = connection.queue(queues), spans[queues[0]]
        begin = store.first_offset() if start is None else start
        found = store.plan_events(begin, end) if begin != end else ()
        return [Piece(queues, part, getattr(part, "rows", 1)) for part in found]

    alike = _alike(connected, spans)
    return grouped([piece for pieces in _for_each(connected, plan, alike) for piece in pieces], parts)


def _alike(connected: Connected, spans: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Returns the queues, put together if the store reads them as one and they have the same span."""
    if len(spans) < 2:
        return [(queue,) for queue in spans]
    with connected() as connection:
        if not connection.merges:
            return [(queue,) for queue in spans]
    found: dict[str, list[str]] = {}
    for queue, span in spans.items():
        found.setdefault(repr(span), []).append(queue)
    return [tuple(queues) for queues in found.values()]


def _for_each(
    connected: Connected,
    answer: Callable[[StoreConnection, tuple[str, ...]], _Answer],
    groups: Sequence[tuple[str, ...]],
) -> Iterator[_Answer]:
    """Yields the answer for each group of queues, in their order."""
    slices = min(_THREADS, -(-len(groups) // _WORTH))

    def answers(number: int) -> list[_Answer]:
        own = groups[number * len(groups) // slices : (number + 1) * len(groups) // slices]
        with connected() as connection:
            if len(own) > 1:
                connection.expect([queue for queues in own for queue in queues])
            return [answer(connection, queues) for queues in own]

    with ThreadPoolExecutor(max(1, slices)) as threads:
        for found in threads.map(answers, range(slices)):
            yield from found
