"""Judges each copy of a move: whether it is there, as it should be, and in its place."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from jobwire import urls
from jobwire.pipeline.lake.schemas import columns
from jobwire.pipeline.stores.boundary import open_store

DUE_WITHIN_US = 1000
"""In microseconds. A due time may differ by this much: some stores count it from the whole millisecond of the add."""

COMPARED = columns(
    "rank bigint",
    "source string",  # its id there
    "target string",
    "scheduled boolean",
    "content string",
    "is_late boolean",
    "due bigint",  # in microseconds
    "found boolean",  # and waits in the target
    "seen_content string",
    "seen_due bigint",
)
"""A row of the manifest beside what was found of it."""

JUDGED = columns(
    "rank bigint",
    "id string",
    "target string",
    "scheduled boolean",
    "arrived boolean",  # it may be removed from the source
    "equal boolean",
    "begun boolean",
    "missing boolean",
    "changed boolean",
    "due_changed boolean",
    "misplaced boolean",
    "expected bigint",
    "actual bigint",
)


class _Compared(NamedTuple):
    """A row of COMPARED."""

    rank: int
    source: str
    target: str
    scheduled: bool
    content: str | None
    is_late: bool
    due: int | None
    found: bool
    seen_content: str | None
    seen_due: int | None


class _Judged(NamedTuple):
    """A row of JUDGED."""

    rank: int
    id: str
    target: str
    scheduled: bool
    arrived: bool
    equal: bool = False
    begun: bool = False
    missing: bool = False
    changed: bool = False
    due_changed: bool = False
    misplaced: bool = False
    expected: int | None = None
    actual: int | None = None


@dataclass(frozen=True)
class Judge:
    """Makes rows of JUDGED from those of COMPARED. These must be in one partition: first those that were not found, by
    rank, then those that should be ready, then those that should not, both in the order in which the target would run
    them. Runs in one of Spark's processes and keeps a byte for each job.

    A job that was not found may have begun: the target is asked for it.
    """

    url: str
    queue: str
    moving: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        order = _Order(bytearray(self.moving))
        for batch in batches:
            values = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            rows = list(map(_Compared._make, values))
            absent = [row for row in rows if not row.found]
            held = self._held([row.target for row in absent]) if absent else ()
            judged = [order.absent(row, held) for row in absent]
            judged += [one for row in rows if row.found and (one := order.present(row)) is not None]
            if judged:
                arrays = [
                    pa.array(values, kind)
                    for values, kind in zip(zip(*judged, strict=True), JUDGED.arrow.types, strict=True)
                ]
                yield pa.record_batch(arrays, schema=JUDGED.arrow)

    def _held(self, ids: Sequence[str]) -> Collection[str]:
        with closing(open_store(urls.parse(self.url), self.queue, "")) as target:
            return target.present(ids)


@dataclass
class _Order:
    """The jobs up to here. `seen` holds a byte for each rank: a job that changes its state while the target is read may
    be read twice."""

    seen: bytearray
    begun: list[int] = field(default_factory=list[int])
    """Ranks of jobs that should be ready and have begun, ascending."""
    last: int = -1
    """The highest rank of a job that should be ready."""
    number: int = 0

    def absent(self, row: _Compared, held: Collection[str]) -> _Judged:
        """Judges a job that was not found."""
        rank, source, target, scheduled, content, late, due, _, _, _ = row
        if target not in held:
            expected = _hashed(target, content, due if late else self._place(rank))
            return _Judged(rank, source, target, scheduled, arrived=False, missing=True, expected=expected)
        if not late:
            self.begun.append(rank)
        return _Judged(rank, source, target, scheduled, arrived=True, begun=True)

    def present(self, row: _Compared) -> _Judged | None:
        """Judges a job that was found. Returns None if it has been judged before."""
        rank, source, target, scheduled, content, late, due, _, seen_content, seen_due = row
        if self.seen[rank]:
            return None
        self.seen[rank] = 1
        same = content is not None and content == seen_content
        in_time = not late or (due is not None and seen_due is not None and abs(seen_due - due) <= DUE_WITHIN_US)
        misplaced = False
        if late:
            # A due time within the tolerance counts as the one that was asked for.
            planned, actual = due, due if in_time else seen_due
        else:
            misplaced, self.last = rank < self.last, max(rank, self.last)
            self.number += 1
            planned, actual = self._place(rank), self.number
        equal = same and in_time
        expected = _hashed(target, content, planned)
        return _Judged(
            rank,
            source,
            target,
            scheduled,
            arrived=equal,
            equal=equal,
            changed=not equal,
            due_changed=same and not in_time,
            misplaced=misplaced,
            expected=expected,
            actual=expected if same and planned == actual else _hashed(target, seen_content, actual),
        )

    def _place(self, rank: int) -> int:
        """Returns the place of a job that should be ready among those that have not begun, from 1."""
        return rank + 1 - bisect_left(self.begun, rank)


def _hashed(target: str, content: str | None, place: int | None) -> int:
    """Returns four bytes, so that sums over 2^31 jobs fit into a column."""
    text = f"{target} {content} {place}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")
