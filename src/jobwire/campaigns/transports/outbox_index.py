"""The index of an outbox: which line holds which idempotency key.

It is a SQLite file beside the outbox. A search through the outbox would read a file of 1,000,000 lines for each
message, a set of its keys would take some 100 MB in each process, and the end of the file alone would miss a key that
is sent again after weeks of pause. SQLite is in every Python, finds a key among 1,000,000 in microseconds, and holds
at most 2 MB of them in memory.

A row is the hash of a key and the offset of its line. The receipt and the full key are read from the line itself.
`state` records up to which offset of which file the rows are complete. Both change in one transaction, and only while
the outbox is locked. The last lines of this process are kept in memory, as long as only lines of its own follow, and
become rows together. Rows never need to be forced to the disk: whatever is lost is read from the outbox again, and a
damaged index is replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from jobwire.campaigns.transports.transport import Receipt, Retryable

logger = logging.getLogger("jobwire.campaigns")

_BLOCK = 1 << 20
_VERSION = 1  # as in _TABLES
_ASKED = 500
"""Keys that one query looks for."""
_NOTED = 1000
"""Lines of this process that wait to become rows together. A transaction for each write took a third of its time."""
_PASSING = tuple(
    f"SQLITE_{one}" for one in ("BUSY", "LOCKED", "FULL", "IOERR", "READONLY", "CANTOPEN", "PERM", "NOMEM")
)
"""Errors whose cause is outside the index, such as a full disk. It is not damaged."""
_TABLES = """
PRAGMA user_version = 1;
CREATE TABLE keys (hash BLOB PRIMARY KEY, line INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE state (file INTEGER NOT NULL, complete INTEGER NOT NULL);
INSERT INTO state VALUES (0, 0);
"""


class _Line(NamedTuple):
    start: int
    text: bytes


class _Entry(NamedTuple):
    key: str
    receipt: Receipt


class _Outdated(Exception):
    """Raised if a line is not the one that was indexed."""


@dataclass(slots=True)
class _Written:
    """A part of a file that this process has written, and the offsets of its lines by the hashes of their keys."""

    file: int
    start: int
    end: int
    lines: dict[bytes, int] = field(default_factory=dict[bytes, int])


class OutboxIndex:
    """The index of the outbox at `path`. Its caller holds the lock of the outbox during every call."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + ".index")
        self._database: sqlite3.Connection | None = None
        self._opened: os.stat_result | None = None
        self._written: _Written | None = None
        self._complete = 0

    def close(self) -> None:
        if self._database is not None:
            database, self._database = self._database, None
            database.close()

    def behind(self, file: int) -> int:
        """Returns how many bytes of the outbox are still to be read."""
        if self._database is None or self._is_replaced():
            return os.fstat(file).st_size
        if self._written is not None and self._written.end == os.fstat(file).st_size:
            return 0
        return abs(os.fstat(file).st_size - self._complete)

    def find_many(self, file: int, keys: Iterable[str]) -> dict[str, Receipt]:
        """Returns the receipt of the first message with each key that the outbox has. Brings the index up to date
        first."""
        try:
            self._update(file)
            return self._find(file, keys)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "").startswith(_PASSING):
                raise Retryable(f"can't use {self.path}: {error}", reason="OUTBOX_INDEX") from error
            logger.warning("the index %s is damaged (%s); it is made again from the outbox", self.path, error)
        except _Outdated:
            logger.warning("lines were changed in the outbox of %s; the index is made again", self.path)
        self._discard()
        self._update(file)
        return self._find(file, keys)

    def expect(self, file: int, start: int, lines: Mapping[str, bytes]) -> None:
        """Takes note of lines that were just written, by their keys. They are found at once, and become rows later."""
        number = os.fstat(file).st_ino
        written = self._written
        if written is None or (written.file, written.end) != (number, start):
            written = self._written = _Written(number, start, start)
        for key, line in lines.items():
            written.lines[_hash(key)] = written.end
            written.end += len(line)

    def _find(self, file: int, keys: Iterable[str]) -> dict[str, Receipt]:
        database, found = self._connected(), dict[str, Receipt]()
        hashes = {_hash(key): key for key in keys}
        noted = {} if self._written is None else self._written.lines
        lines = [(hashed, noted[hashed]) for hashed in hashes if hashed in noted]
        listed = list(hashes)
        for start in range(0, len(listed), _ASKED):
            some = listed[start : start + _ASKED]
            marks = ", ".join("?" * len(some))
            lines += database.execute(f"SELECT hash, line FROM keys WHERE hash IN ({marks})", some)  # noqa: S608 - only ?
        for hashed, line in lines:
            found[hashes[hashed]] = _receipt_at(file, line, hashes[hashed])
        return found

    def _update(self, file: int) -> None:
        database = self._connected()
        found = os.fstat(file)
        indexed, complete = database.execute("SELECT file, complete FROM state").fetchone()
        self._complete = complete
        same = indexed == found.st_ino and complete <= found.st_size
        if same and complete:
            same = os.pread(file, 1, complete - 1) == b"\n"
        noted = self._written
        if noted is None or not same or (noted.file, noted.start, noted.end) != (indexed, complete, found.st_size):
            noted = self._written = None
        if same and (complete == found.st_size if noted is None else len(noted.lines) < _NOTED):
            return
        with database:
            if not same:
                complete = 0
                database.execute("DELETE FROM keys")
            rows = _keys(file, complete, found.st_size) if noted is None else noted.lines.items()
            # An earlier line wins: a key is sent once, and its first receipt is the one that counts.
            database.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", rows)
            database.execute("UPDATE state SET file = ?, complete = ?", (found.st_ino, found.st_size))
        self._written = None
        self._complete = found.st_size

    def _connected(self) -> sqlite3.Connection:
        """Returns the connection to the index at the path, which another process may have replaced."""
        if self._database is not None and not self._is_replaced():
            return self._database
        self.close()
        # Only one thread uses it at a time, but not always the same.
        self._database = sqlite3.connect(self.path, timeout=5, check_same_thread=False)
        self._database.executescript("PRAGMA synchronous = OFF; PRAGMA journal_mode = TRUNCATE;")
        [version] = self._database.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            if version or self._database.execute("SELECT 1 FROM sqlite_master").fetchone():
                self._discard()
                return self._connected()
            self._database.executescript(f"BEGIN; {_TABLES} COMMIT;")
        self._opened = self.path.stat()
        return self._database

    def _is_replaced(self) -> bool:
        try:
            return self._opened is None or not os.path.samestat(self._opened, self.path.stat())
        except FileNotFoundError:
            return True

    def _discard(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.close()
        # The journal goes first: alone, it would be applied to the next index.
        self.path.with_name(self.path.name + "-journal").unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


def last_line_end(file: int, end: int) -> int:
    """Returns the offset after the last whole line before `end`."""
    while end:
        start = max(0, end - _BLOCK)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _keys(file: int, start: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Yields the hash of each line's key and the offset of the line. Skips lines that are not messages."""
    for line in _lines(file, start, end):
        if (entry := _entry(line.text)) is not None:
            yield _hash(entry.key), line.start
        else:
            logger.warning("the outbox has a line at offset %d that is not a message; it is skipped", line.start)


def _receipt_at(file: int, offset: int, key: str) -> Receipt:
    line = next(_lines(file, offset, os.fstat(file).st_size), None)
    entry = None if line is None else _entry(line.text)
    if entry is None or entry.key != key:
        raise _Outdated
    return entry.receipt


def _entry(text: bytes) -> _Entry | None:
    """Returns what a line records, or None if it is not a line of an outbox."""
    try:
        fields: Any = orjson.loads(text)
        key, at = fields["idempotencyKey"], datetime.fromisoformat(fields["at"])
        return _Entry(key, Receipt(fields["id"], at)) if isinstance(key, str) else None
    except (ValueError, KeyError, TypeError):
        return None


def _lines(file: int, start: int, end: int) -> Iterator[_Line]:
    """Yields the whole lines between two offsets. Holds one block and one line in memory."""
    rest = b""
    while start + len(rest) < end:
        position = start + len(rest)
        block = os.pread(file, min(_BLOCK, end - position), position)
        if not block:
            return
        *whole, rest = (rest + block).split(b"\n")
        for text in whole:
            yield _Line(start, text)
            start += len(text) + 1


@lru_cache(maxsize=1000)
def _hash(key: str) -> bytes:
    # The keys of a call are looked for, and then noted: the second time they are in the cache.
    return hashlib.sha256(key.encode()).digest()[:16]
