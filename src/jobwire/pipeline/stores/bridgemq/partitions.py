"""Dividing a job type into slices: ranges of the index, cut where the ranks make slices equal.

The running jobs are few and read whole. Slices are read at different times, so a job may pass from one that is still to
be read into one that has been read; a slice whose first job is gone therefore ends with the running jobs and those that
finished since the plan was made, so what went forward is found. A job that failed meanwhile and waits for its retry in
a slice that was read before is left to the next read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.bridgemq.index import PLACES, Index, Place
from jobwire.pipeline.stores.redisio.connection import Command
from jobwire.pipeline.stores.redisio.fingerprint import digest
from jobwire.pipeline.stores.redisio.partitions import BEGINNING, END, Bound, Cut, boundaries, cut


@dataclass(frozen=True)
class Range:
    """Jobs of a place from one bound to before another; `near` is the first of them and had this rank. Of the running
    jobs, which are read whole, it stands for all of them."""

    place: str
    low: Bound = BEGINNING
    high: Bound = END
    near: bytes = b""
    rank: int = 0


@dataclass(frozen=True)
class Part:
    """What one process reads, in this order."""

    ranges: tuple[Range, ...]
    since_ms: int
    """The server's clock when the plan was made."""


def plan(index: Index, wanted: Wanted, parts: int, finished_from_ms: int | None = None) -> list[Part]:
    """`finished_from_ms` leaves out what finished before, as the index knows it."""
    index.heal()
    places = [place for place in PLACES.values() if wanted.state(place.state)]
    now = index.link.now_ms()
    counts = index.link.calls([_size(index, place, finished_from_ms) for place in places])
    sizes: dict[str, int] = {
        place.name: index.link.accepted(count) for place, count in zip(places, counts, strict=True)
    }
    slices = cut(list(sizes.items()), parts)
    cuts = [one for part in slices for one in part if one.place != "claims" or not one.start]
    ranges = dict(zip(cuts, _resolved(index, cuts, sizes, finished_from_ms), strict=True))
    planned = [tuple(ranges[one] for one in part if one in ranges) for part in slices]
    return [Part(part, now) for part in planned if part]


def finished_from(wanted: Wanted) -> int | None:
    """The index is as old as the end of each run, or newer, so it can leave out what finished before."""
    return None if wanted.finished_from is None else math.floor(wanted.finished_from.timestamp() * 1000)


def running(index: Index) -> bytes:
    """Differs when other jobs run."""
    ids: list[bytes] = index.link.call("HKEYS", index.key("claims"))
    return digest(sorted(ids)).encode()


def _low(place: Place, finished_from_ms: int | None) -> Bound:
    return Bound(b"%d" % finished_from_ms) if finished_from_ms is not None and place.state.finished else BEGINNING


def _size(index: Index, place: Place, finished_from_ms: int | None) -> Command:
    key = index.key(place.name)
    if place.name == "claims":
        return ("HLEN", key)
    return ("ZCOUNT", key, _low(place, finished_from_ms).score, "+inf")


def _resolved(index: Index, cuts: Sequence[Cut], sizes: dict[str, int], finished_from_ms: int | None) -> list[Range]:
    """Each cut with the bounds that mark its ends."""
    sets = [one for one in cuts if one.place != "claims"]
    questions = [(index.key(one.place), _low(PLACES[one.place], finished_from_ms), END, one) for one in sets]
    bounded = iter(boundaries(index.link, questions, sizes))
    ranges: list[Range] = []
    for one in cuts:
        if one.place == "claims":
            ranges.append(Range("claims", near=running(index)))
        else:
            near, low, high = next(bounded)
            ranges.append(Range(one.place, low, high, near, one.start))
    return ranges
