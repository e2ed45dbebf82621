"""Reads the partitions of a plan.

A list is read from its far end towards the end that runs. Jobs taken from there during the read shift the rest by as
much towards the reader, so it reads some again and skips none. What is pushed to the running end shifts them away; each
step therefore begins a little before the last one ended, and searches for its position if it can't find it there.

A job that leaves a partition before it is read is found by the chase at the partition's end. It reads every job that
the events since the plan name, except those that were added after the plan. A busy queue may have trimmed these events.
Then a partition whose first job is gone reads the running jobs and all that finished since, so that jobs that moved
forward are found. Left to the next read are jobs that only the trimmed events named: those that went back to wait for
their next attempt in a partition that had been read. Jobs read twice are rows twice; the later one is the more recent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from redis.exceptions import ResponseError

from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.redisio.scripts import load
from jobwire.pipeline.lake.rows import JobRow
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.stores.batches import Rows
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.bullmq.containers import CONTAINERS, NOWHERE, SIDES, Container
from jobwire.pipeline.stores.bullmq.fingerprint import Sides, in_order
from jobwire.pipeline.stores.bullmq.partitions import NO_EVENT, ListRange, Moment, Part, SetRange, Whole, bounds
from jobwire.pipeline.stores.bullmq.rows import Records
from jobwire.pipeline.stores.redisio.batch_size import BatchSize
from jobwire.pipeline.stores.redisio.connection import Command, RedisConnection
from jobwire.pipeline.stores.redisio.partitions import Bound, members

_BACKEND = "jobwire.backends.bullmq"
_IDS = 2_000
_OVERLAP = 50
_SKEW_MS = 10_000
"""Workers write the times at which jobs finish by clocks of their own."""
_TWIN = {"wait": "paused", "paused": "wait"}
_MOVES = frozenset((b"active", b"waiting", b"delayed", b"waiting-children", b"completed", b"failed"))
_SIDE_COMMANDS: Sequence[tuple[bytes, Command]] = tuple(
    zip(
        SIDES,
        (
            ("LRANGE", 0, -1),
            ("SMEMBERS",),
            ("HGETALL",),
            ("HGETALL",),
            ("ZRANGE", 0, -1, "WITHSCORES"),
        ),
        strict=True,
    )
)


class Entry(NamedTuple):
    """An id in its container."""

    id: bytes
    position: int | None = None
    score: float = 0.0


class JobsReader:
    """Reads the partitions of one plan."""

    def __init__(self, connection: RedisConnection, keys: Keys, store: str, wanted: Wanted) -> None:
        self._connection = connection
        self._keys = keys
        self._records = Records(store, keys)
        self._wanted = wanted
        self._batch = BatchSize()
        self._lost = False

    def read(self, part: Part) -> Iterator[pa.RecordBatch]:
        rows = Rows(JOBS)
        all_wanted = self._wanted == Wanted()
        for container, entries in self._found(part):
            for row, size in self._rows(container, entries):
                if all_wanted or self._wanted.row(row):
                    rows.add(row, size)
                if rows.full():
                    yield from rows.flush()
        yield from rows.flush()

    def _found(self, part: Part) -> Iterator[tuple[Container, list[Entry]]]:
        for one in part.ranges:
            container = CONTAINERS[one.container]
            match one:
                case ListRange():
                    steps = self._from_list(one)
                case SetRange():
                    steps = self._from_set(container, one)
                case Whole():
                    steps = self._whole(one.container)
            for entries in steps:
                yield container, entries
        if part.chases:
            yield from self._chase(part.since)

    def _whole(self, container: str) -> Iterator[list[Entry]]:
        self._lost = True  # any of its jobs may have finished
        yield [Entry(job_id) for job_id in self._connection.call("LRANGE", self._keys.base + container, 0, -1)]

    def _from_set(self, container: Container, one: SetRange) -> Iterator[list[Entry]]:
        key = self._keys.base + one.container
        rank = one.rank + one.ahead
        for page in members(self._connection, key, one.low, one.high, _IDS):
            numbers: Sequence[int | None] = range(rank, rank + len(page)) if container.in_order else [None] * len(page)
            yield [Entry(one.id, number, float(one.score)) for one, number in zip(page, numbers, strict=True)]
            rank += len(page)
        if one.near and not container.state.finished and self._connection.call("ZSCORE", key, one.near) is None:
            self._lost = True

    def _from_list(self, one: ListRange) -> Iterator[list[Entry]]:
        key, far, near = self._ends(one)
        self._lost = self._lost or near is None
        at, stop = (one.last if far is None else far), near or 0
        met: list[bytes] = []
        while at >= stop:
            # Indexes count from the running end here; the server's own -1 is the first of them.
            begin, end = at + (_OVERLAP if met or far is None else 0), max(at - _IDS + 1, stop)
            ids: list[bytes] = self._connection.call("LRANGE", key, -begin - 1, -end - 1)
            if met and met[-1] not in ids:
                again = self._index(key, met[-1])
                if again is not None and again > at + 1:
                    at = again - 1
                    continue
            known, first = frozenset(met), one.ahead + end + len(ids) - 1
            yield [Entry(job_id, first - n) for n, job_id in enumerate(ids) if job_id not in known]
            met = ids[-_OVERLAP:]
            at = end - 1
            if at < stop and stop:
                # Jobs taken during the read have brought the rest of the range closer to the end.
                near = self._index(key, one.near)
                self._lost = self._lost or near is None
                stop = min(stop, near or 0)

    def _ends(self, one: ListRange) -> tuple[str, int | None, int | None]:
        """Returns the list's key, and the indexes of the range's ends if they still exist. Pausing and resuming a queue
        renames the list."""
        for name in (one.container, _TWIN[one.container]):
            key = self._keys.base + name
            far, near = self._index(key, one.far), self._index(key, one.near)
            if far is not None or near is not None:
                return key, far, near
        return self._keys.base + one.container, None, None

    def _index(self, key: str, job_id: bytes) -> int | None:
        length, left = self._connection.together(("LLEN", key), ("LPOS", key, job_id, "RANK", -1))
        return None if left is None else length - 1 - left

    def _chase(self, since: Moment) -> Iterator[tuple[Container, list[Entry]]]:
        """Yields what has moved since the plan was made."""
        new: set[bytes] = set()
        after = since.event
        first: list[Any] = self._connection.call("XRANGE", self._keys.events, "-", "+", "COUNT", 1)
        trimmed = bool(first) and after != NO_EVENT and _order(first[0][0]) > _order(after.encode())
        while True:
            events: list[Any] = self._connection.call("XRANGE", self._keys.events, f"({after}", "+", "COUNT", _IDS)
            moved: dict[bytes, None] = {}
            for event_id, fields in events:
                after = event_id.decode()
                entry = dict(zip(fields[::2], fields[1::2], strict=False))
                kind, job_id = entry.get(b"event"), entry.get(b"jobId")
                if job_id is None:
                    continue
                if kind == b"added":
                    new.add(job_id)
                elif kind in _MOVES and job_id not in new:
                    moved[job_id] = None
            yield from self._placed(list(moved))
            if len(events) < _IDS:
                break
        if trimmed and self._lost:
            yield (
                CONTAINERS["active"],
                [Entry(each) for each in self._connection.call("LRANGE", self._keys.active, 0, -1)],
            )
            for name in ("completed", "failed"):
                container = CONTAINERS[name]
                low, high = bounds(container, self._wanted)
                low = max(low, Bound(b"%d" % (since.ms - _SKEW_MS)), key=lambda bound: bound.order)
                for page in members(self._connection, self._keys.base + name, low, high, _IDS):
                    yield container, [Entry(one.id, None, float(one.score)) for one in page]

    def _placed(self, ids: Sequence[bytes]) -> Iterator[tuple[Container, list[Entry]]]:
        """Yields jobs by the containers where the backend's own script finds them."""
        script = load(_BACKEND, "read_jobs")
        for start in range(0, len(ids), self._batch.chunk):
            some = ids[start : start + self._batch.chunk]
            answer: list[Any] = self._connection.run(script, self._keys.base, some)
            containers: dict[str, list[Entry]] = {}
            for job_id, name, score, fields in zip(some, answer[::3], answer[1::3], answer[2::3], strict=True):
                if fields:
                    containers.setdefault(name.decode(), []).append(Entry(job_id, None, float(score or 0)))
            for name, entries in containers.items():
                yield CONTAINERS.get(name, NOWHERE), entries

    def _rows(self, container: Container, entries: Sequence[Entry]) -> Iterator[tuple[JobRow, int]]:
        """Yields rows. Jobs that were removed since are left out."""
        base, connection = self._keys.base.encode(), self._connection
        start = 0
        while start < len(entries):
            some = entries[start : start + self._batch.chunk]
            start += len(some)
            commands: list[Command] = [("HGETALL", base + entry.id) for entry in some]
            if container.state.finished:
                # Few jobs have side keys, so all are asked for at once.
                commands.append(("EXISTS", *(base + entry.id + ending for entry in some for ending in SIDES)))
            replies = connection.calls(commands)
            sides = self._sides(some) if replies[len(some) :] not in ([], [0]) else {}
            total = 0
            for entry, flat in zip(some, replies, strict=False):
                if isinstance(flat, ResponseError):
                    reason = f"its key holds no hash: {flat}"
                    yield self._records.malformed(container, entry.id, reason), 0
                elif flat:
                    size = sum(map(len, flat))
                    total += size
                    pairs = iter(flat)
                    fields = dict(zip(pairs, pairs, strict=True))
                    beside = sides.get(entry.id, {})
                    yield self._records.row(container, entry.id, fields, beside, entry.position, entry.score), size
            self._batch.read(len(some), total)

    def _sides(self, entries: Sequence[Entry]) -> dict[bytes, Sides]:
        """Returns the side keys of jobs. Only finished jobs are asked for: archives hold jobs whole."""
        base = self._keys.base.encode()
        numbers = self._connection.calls(
            [("EXISTS", *(base + entry.id + ending for ending in SIDES)) for entry in entries]
        )
        having = [entry.id for entry, number in zip(entries, numbers, strict=True) if number]
        replies = self._connection.calls(
            [
                (command[0], base + job_id + ending, *command[1:])
                for job_id in having
                for ending, command in _SIDE_COMMANDS
            ]
        )
        width = len(_SIDE_COMMANDS)
        found: dict[bytes, Sides] = {}
        for number, job_id in enumerate(having):
            its = zip(SIDES, replies[number * width : (number + 1) * width], strict=True)
            found[job_id] = {
                ending: in_order(ending, reply)
                for ending, reply in its
                if reply and not isinstance(reply, ResponseError)
            }
        return found


def _order(event_id: bytes) -> tuple[int, int]:
    ms, _, number = event_id.partition(b"-")
    return int(ms), int(number or 0)
