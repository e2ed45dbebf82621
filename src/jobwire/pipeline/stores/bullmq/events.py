"""Reads the queue's event stream in ranges of ids.

An offset is `{"id": the last event read, "n": how many events the stream had ever had up to that one}`; the number is
left out where the server does not count (before Redis 7).

The server trims the stream to about 10,000 events. What was trimmed unread, also before the first look, becomes one row
of kind `gap`. With the numbers its size is exact: the server counts what was ever added, so the number of events that
are neither stored nor read is known. A stream that was deleted and created again counts from 0, and what the old one
had at its end is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
from redis.exceptions import ResponseError

from jobwire.backends.bullmq.keys import Keys
from jobwire.pipeline.lake.rows import EventRow
from jobwire.pipeline.lake.schemas import EVENTS
from jobwire.pipeline.stores.batches import Rows
from jobwire.pipeline.stores.boundary import Offset
from jobwire.pipeline.stores.bullmq.partitions import NO_EVENT
from jobwire.pipeline.stores.bullmq.rows import LATEST_MS, shown
from jobwire.pipeline.stores.redisio.connection import RedisConnection

_STEP = 2_000
_SLICES = 4
_SMALL = 20_000
"""Events that are not worth dividing: one process reads them in a fraction of a second."""


@dataclass(frozen=True)
class Gap:
    """Events that were trimmed unread: after one id, before another, and how many if that is known."""

    after: str
    before: str
    lost: int | None


@dataclass(frozen=True)
class Span:
    """Events after one id, up to and with another."""

    after: str
    last: str
    rows: int = 1
    """About how many there are."""


@dataclass(frozen=True)
class _Stream:
    """The server's description of the stream."""

    length: int
    first: str
    last: str
    """The id of the newest event that it ever had."""
    added: int | None
    """Events that it ever had; None where the server does not count, or some were deleted singly."""

    @property
    def trimmed(self) -> int | None:
        return None if self.added is None else self.added - self.length


class EventLog:
    """The event stream of one queue."""

    def __init__(self, connection: RedisConnection, keys: Keys, store: str) -> None:
        self._connection = connection
        self._keys = keys
        self._store = store

    def first(self) -> Offset:
        return {"id": NO_EVENT}

    def latest(self, start: Offset, max_rows: int | None) -> Offset:
        stream = self._stream()
        if stream is None or stream.last in (start["id"], NO_EVENT):
            return start
        after, known = self._restart(stream, start)
        newest = _offset(stream.last, stream.added)
        if max_rows is None:
            return newest
        if known is not None and stream.added is not None and stream.added - known <= max_rows:
            return newest
        # The n-th event is only found by reading those before it.
        read = 0
        while read < max_rows:
            step = self._between(after, "+", min(_STEP, max_rows - read))
            if not step:
                return newest
            read += len(step)
            after = step[-1][0].decode()
        return _offset(after, None if known is None else known + read)

    def passed(self, offset: Offset, target: Offset) -> bool:
        if order(offset["id"]) < order(target["id"]):
            return False
        stream = self._stream()
        # An offset beyond the stream's end belongs to a stream that was deleted.
        return stream is None or order(offset["id"]) <= order(stream.last) or offset["id"] == target["id"]

    def plan(self, start: Offset, end: Offset) -> list[Gap | Span]:
        stream = self._stream()
        parts: list[Gap | Span] = []
        after = str(start["id"])
        if stream is None:
            return [Gap(after, str(end["id"]), None)] if after != end["id"] else []
        gap = self._gap(stream, start, end)
        if gap is not None:
            parts.append(gap)
            after = NO_EVENT if order(after) > order(end["id"]) else after
        number = end["n"] - start["n"] if "n" in start and "n" in end else stream.length
        return [*parts, *self._spans(stream, after, str(end["id"]), number)]

    def read(self, part: Gap | Span) -> Iterator[pa.RecordBatch]:
        rows = Rows(EVENTS)
        if isinstance(part, Gap):
            data = {"after": part.after, "before": part.before, "lost": part.lost}
            text = orjson.dumps(data).decode()
            at = _micros(part.before)
            rows.add(EventRow(self._store, self._keys.queue, f"gap:{part.after}", "gap", None, at, text))
            yield from rows.flush()
            return
        after, step = part.after, _STEP
        while len(events := self._between(after, part.last, step)):
            for event_id, fields in events:
                rows.add(*self._row(event_id, fields or ()))
                if rows.full():
                    yield from rows.flush()
            if len(events) < step:
                break
            after = events[-1][0].decode()
        yield from rows.flush()

    def _between(self, after: str, last: str, count: int) -> list[Any]:
        return self._connection.call("XRANGE", self._keys.events, f"({after}", last, "COUNT", count)

    def _stream(self) -> _Stream | None:
        (found,) = self._connection.calls([("XINFO", "STREAM", self._keys.events)])
        if isinstance(found, ResponseError) and "no such key" in str(found):
            return None
        flat: list[Any] = self._connection.accepted(found)
        about = dict(zip(flat[::2], flat[1::2], strict=True))
        first, last = about[b"first-entry"], about[b"last-generated-id"].decode()
        singly = about.get(b"max-deleted-entry-id", b"0-0") != b"0-0"
        added = None if singly else about.get(b"entries-added")
        return _Stream(about[b"length"], first[0].decode() if first else last, last, added)

    def _restart(self, stream: _Stream, start: Offset) -> tuple[str, int | None]:
        """Returns where to continue, and the number of events up to there."""
        after, known = str(start["id"]), start.get("n")
        if order(after) > order(stream.last):
            return NO_EVENT, stream.trimmed
        if order(after) < order(stream.first):
            return after, stream.trimmed
        return after, known

    def _gap(self, stream: _Stream, start: Offset, end: Offset) -> Gap | None:
        after, known = str(start["id"]), start.get("n")
        if after == NO_EVENT:
            # The first look: all that was ever added and is not there any more, if the server counts.
            return Gap(after, stream.first, stream.trimmed) if stream.trimmed else None
        if order(after) > order(stream.last) or order(after) > order(end["id"]):
            return Gap(after, stream.first, None)
        if order(after) >= order(stream.first):
            return None
        before, gone = stream.first, stream.trimmed
        if order(before) > order(end["id"]):
            # What was trimmed after the end of this batch is reported by the next one.
            before, gone = str(end["id"]), end.get("n") if gone is not None else None
        if known is None or gone is None or gone < known:
            return Gap(after, before, None)
        return Gap(after, before, gone - known) if gone > known else None

    def _spans(self, stream: _Stream, after: str, last: str, number: int) -> list[Span]:
        """Divides by time: a stream has no other index."""
        low, high = max(order(after), order(stream.first))[0], order(last)[0]
        if number <= _SMALL or high - low < _SLICES:
            return [Span(after, last, max(1, number))] if order(after) < order(last) else []
        times = [low + (high - low) * each // _SLICES for each in range(1, _SLICES)]
        ends = [*(f"{ms}-{2**64 - 1}" for ms in times), last]
        rows = number // _SLICES
        return [Span(one, other, rows) for one, other in zip([after, *ends], ends, strict=False)]

    def _row(self, event_id: bytes, fields: Any) -> tuple[EventRow, int]:
        """Returns an entry of the stream as a row, and the size of its data."""
        text_id = event_id.decode()
        kind = job_id = problem = None
        pairs = iter(fields)
        try:
            texts = {name.decode(): value.decode() for name, value in zip(pairs, pairs, strict=False)}
        except UnicodeDecodeError:
            data = orjson.dumps([shown(each) for each in fields]).decode()
            problem = "it holds bytes that are not UTF-8"
        else:
            kind, job_id = texts.pop("event", None), texts.pop("jobId", None)
            data = orjson.dumps(texts).decode()
            problem = None if kind else "it has no field `event`"
        row = EventRow(self._store, self._keys.queue, text_id, kind, job_id, _micros(text_id), data, problem)
        return row, len(data)


def order(event_id: str) -> tuple[int, int]:
    """Returns the sort key of an id: ids sort as pairs of numbers, not as texts."""
    ms, _, number = event_id.partition("-")
    return int(ms), int(number or 0)


def _offset(event_id: str, number: int | None) -> Offset:
    return {"id": event_id} if number is None else {"id": event_id, "n": number}


def _micros(event_id: str) -> int:
    return min(order(event_id)[0], LATEST_MS) * 1000
