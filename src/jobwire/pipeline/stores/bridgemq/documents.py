"""Reads the stored documents of jobs, many at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jobwire.pipeline.stores.bridgemq.index import Container, Index
from jobwire.pipeline.stores.redisio.batch_size import BatchSize
from jobwire.pipeline.stores.redisio.connection import Command


class Entry(NamedTuple):
    """An id in its container."""

    id: bytes
    position: int | None = None
    score: bytes = b""
    claim: bytes = b""


class Stored(NamedTuple):
    """Everything that the store holds of a job."""

    entry: Entry
    container: Container
    data: bytes
    status: bytes | None
    result: bytes | None
    progress: bytes | None
    logs: Sequence[bytes]
    foreign: str = ""
    """The type of a data key that is not a string, and so does not hold a job."""

    @property
    def size(self) -> int:
        return len(self.data) + len(self.result or b"") + len(self.progress or b"") + sum(map(len, self.logs))


class Documents:
    """Reads the documents of jobs of one type."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._batch = BatchSize()

    def read(self, container: Container, entries: Sequence[Entry]) -> Iterator[Stored]:
        """Yields the stored jobs. Those that have expired or were removed since are left out."""
        start = 0
        while start < len(entries):
            some = entries[start : start + self._batch.chunk]
            start += len(some)
            total = 0
            for stored in self._chunk(container, some):
                total += stored.size
                yield stored
            self._batch.read(len(some), total)

    def _chunk(self, container: Container, entries: Sequence[Entry]) -> Iterator[Stored]:
        jobs = self._index.keys.base.encode() + b"jobs:"
        commands: list[Command] = [
            ("MGET", *(jobs + kind + entry.id for entry in entries))
            for kind in (b"data:", b"status:", b"result:", b"progress:")
        ]
        *columns, logs = self._index.connection.calls([*commands, self._logs_command(entries)])
        columns = [self._index.connection.accepted(column) for column in columns]
        logged = self._logs(entries) if logs else {}
        missing = [entry.id for entry, data in zip(entries, columns[0], strict=True) if data is None]
        kinds = self._foreign(jobs, missing)
        for entry, data, status, result, progress in zip(entries, *columns, strict=True):
            if data is not None or entry.id in kinds:
                about = (status, result, progress, logged.get(entry.id, ()))
                yield Stored(entry, container, data or b"", *about, kinds.get(entry.id, ""))

    def _logs_command(self, entries: Sequence[Entry]) -> Command:
        prefix = self._index.keys.logs("").encode()
        return ("EXISTS", *(prefix + entry.id for entry in entries))

    def _logs(self, entries: Sequence[Entry]) -> dict[bytes, Sequence[bytes]]:
        prefix = self._index.keys.logs("").encode()
        replies = self._index.connection.calls([("LRANGE", prefix + entry.id, 0, -1) for entry in entries])
        return {entry.id: lines for entry, lines in zip(entries, replies, strict=True) if isinstance(lines, list)}

    def _foreign(self, jobs: bytes, ids: Sequence[bytes]) -> dict[bytes, str]:
        """Returns the types of keys that are not strings: MGET does not report them."""
        kinds: list[Any] = (
            self._index.connection.calls([("TYPE", jobs + b"data:" + job_id) for job_id in ids]) if ids else []
        )
        return {job_id: kind.decode() for job_id, kind in zip(ids, kinds, strict=True) if kind != b"none"}
