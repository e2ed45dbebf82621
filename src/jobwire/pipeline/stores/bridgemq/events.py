"""Derives events from the jobs themselves: the protocol keeps no log of events.

A job's documents hold when it was created, when its present run began and could have begun, and when and how its last
run ended. Earlier runs leave nothing, unless workers remember them in the job's data. So the words are `created`,
`claimed`, `completed`, `retried` (a run failed and another follows) and `dead`, and a job that is removed before it is
read has no events.

An offset is `{"at": milliseconds of the server's clock, "look": how the queue looked}`. Times are written by the clocks
of producers and workers, so each batch begins a minute before the last one ended, and some events are read again under
the same ids. Jobs that finished before that are left out by the index. All others are read at every batch, as waiting
jobs have no index by time: a batch costs as much as reading all jobs that wait, run or are delayed. That is why batches
are not cut by number, and why a queue that looks unchanged is not read at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from jobwire.backends.bridgemq import codec
from jobwire.model import State
from jobwire.pipeline.lake.rows import EventRow
from jobwire.pipeline.lake.schemas import EVENTS
from jobwire.pipeline.stores.batches import Rows
from jobwire.pipeline.stores.boundary import Offset, Wanted
from jobwire.pipeline.stores.bridgemq import partitions
from jobwire.pipeline.stores.bridgemq.documents import Stored
from jobwire.pipeline.stores.bridgemq.index import Index
from jobwire.pipeline.stores.bridgemq.jobs import stored_jobs
from jobwire.pipeline.stores.bridgemq.rows import Bad, as_text, document_of, shown

OVERLAP_MS = 60_000
_SLICES = 4
_LAST_MS = 253_402_300_799_999
_Event = tuple[str, int, int, dict[str, Any]]
"""Kind, number of the run, milliseconds, data."""


@dataclass(frozen=True)
class Window:
    """Events of a partition's jobs after one moment, up to and with another; both in milliseconds."""

    part: partitions.Part
    after: int
    last: int


class EventLog:
    """The events of one job type."""

    def __init__(self, index: Index, store: str) -> None:
        self._index = index
        self._store = store

    def first(self) -> Offset:
        return {"at": 0}

    def latest(self, start: Offset) -> Offset:
        look = self.look()
        return start if start.get("look") == look else {"at": self._index.connection.now_ms(), "look": look}

    def passed(self, offset: Offset, target: Offset) -> bool:
        return offset["at"] >= target["at"]

    def plan(self, start: Offset, end: Offset) -> list[Window]:
        after = max(0, start["at"] - OVERLAP_MS) if start["at"] else -1
        parts = partitions.plan(self._index, Wanted(), _SLICES, max(0, after))
        return [Window(part, after, end["at"]) for part in parts]

    def read(self, window: Window) -> Iterator[pa.RecordBatch]:
        rows = Rows(EVENTS)
        for stored in stored_jobs(self._index, window.part):
            for row in self._rows(stored, window):
                rows.add(row, len(row.data))
            if rows.full():
                yield from rows.flush()
        yield from rows.flush()

    def look(self) -> str:
        """Returns a text that differs whenever something may have happened."""
        index = self._index
        index.reindex()
        sets = [index.key(container) for container in ("type", "delayed", "completed", "dead")]
        moved, claims, *about = index.connection.together(
            ("HMGET", f"{index.keys.base}x:seq", "head", "tail"),
            ("HVALS", index.key("claims")),
            *(("ZCARD", key) for key in sets),
            *(("ZREVRANGE", key, 0, 0, "WITHSCORES") for key in sets),
        )
        seen = [moved, len(claims), max(map(_started, claims), default=0), *about]
        return hashlib.sha1(repr(seen).encode(), usedforsecurity=False).hexdigest()

    def _rows(self, stored: Stored, window: Window) -> Iterator[EventRow]:
        try:
            document = document_of(stored, self._index.kind)
            job_id = stored.entry.id.decode()
        except (Bad, UnicodeDecodeError):
            return  # the table `jobs` has these
        if document is None:
            return
        for kind, run, at, data in _events_of(stored, document):
            if window.after < at <= min(window.last, _LAST_MS):
                event_id = f"{job_id}:{run}:{kind}:{at}"
                yield EventRow(self._store, self._index.kind, event_id, kind, job_id, at * 1000, as_text(data))


def _events_of(stored: Stored, document: codec.Document) -> Iterator[_Event]:
    """Yields the events that the documents of a job contain."""
    failures = codec.integer(document.get("attempts"), 0)
    created = codec.integer(document.get("createdAt"), 0)
    yield "created", 0, created, _due(document, created)
    yield from _remembered(document)
    state = stored.container.state
    if state is State.ACTIVE:
        started, worker = _started(stored.entry.claim), shown(stored.entry.claim.split(b"|", 3)[-1])
        if started:
            by = {"worker": worker} if worker else {}
            yield "claimed", failures + 1, started, {**by, **_ready(document, failures + 1, started)}
    result = codec.parse(stored.result) if stored.result else None
    if result is None:
        return
    about = codec.mapping(result.get("x"))
    run = failures + 1 if state is State.COMPLETED else max(failures, 1)
    by = {"worker": shown(str(about["worker"]))} if about.get("worker") else {}
    started, ended = codec.integer(about.get("startedAt"), 0), codec.integer(result.get("completedAt"), 0)
    if started:
        yield "claimed", run, started, {**by, **_ready(document, run, started)}
    if not ended:
        return
    if result.get("success") is True:
        yield "completed", run, ended, {**by, "result": result.get("data")}
        return
    error = codec.mapping(result.get("error"))
    data: dict[str, Any] = {**by, "error": error.get("message"), "name": error.get("name")}
    if state is State.DELAYED:
        data["delay"] = int(float(stored.entry.score))
    yield "dead" if state is State.FAILED else "retried", run, ended, data


def _due(document: codec.Document, created: int) -> dict[str, Any]:
    """Returns when a job was to run, in milliseconds, if not at once."""
    schedule = codec.mapping(document.get("schedule"))
    at, delay = codec.integer(schedule.get("runAt"), 0), codec.integer(schedule.get("delay"), 0)
    due = at or (created + delay if delay else 0)
    return {"delay": due} if due else {}


def _remembered(document: codec.Document) -> Iterator[_Event]:
    """Yields the events of failed attempts that a worker has remembered in the job's data."""
    stored: Any = codec.mapping(document.get("x")).get("attempts")
    ready: dict[int, int] = {}
    for run in map(codec.mapping, cast("list[Any]", stored) if isinstance(stored, list) else ()):
        number, started, ended = (codec.integer(run.get(name), 0) for name in ("attempt", "startedAt", "endedAt"))
        by = {"worker": shown(str(run["worker"]))} if run.get("worker") else {}
        known = {"ready": ready[number]} if 0 < ready.get(number, 0) <= started else {}
        ready[number + 1] = due = codec.integer(run.get("readyAt"), 0)
        if started and ended:
            yield "claimed", number, started, {**by, **known}
            yield "retried", number, ended, {**by, "error": run.get("error"), "name": run.get("name"), "delay": due}


def _ready(document: codec.Document, run: int, started: int) -> dict[str, Any]:
    """Returns when a run after the first became ready, in milliseconds, if our worker failed the one before. A job that
    was promoted has run before that."""
    ready = codec.mapping(codec.mapping(document.get("x")).get("ready"))
    at = codec.integer(ready.get("at"), 0)
    return {"ready": at} if 0 < at <= started and ready.get("attempt") == run else {}


def _started(claim: bytes) -> int:
    """Returns when the run of a claim record began; 0 if the record does not have it."""
    words = claim.split(b"|", 2)
    return int(words[1]) if len(words) == 3 and words[1].isdigit() else 0
