"""Imports channels from a CSV file, all or none, in bounded memory.

The file is read line by line and copied into a temporary table in blocks. One statement then adds the channels that
are new, and another lists all of them in the batch. Everything is one transaction: an import that fails in any way
leaves nothing behind. A field can't go over several lines, so each line is checked by itself and an unclosed quote
spoils one line and not the rest of the file.
"""

from __future__ import annotations

import csv
import os
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from jobwire import checks
from jobwire.campaigns.channel_names import username_of
from jobwire.campaigns.ids import id_prefix
from jobwire.campaigns.store import Store, store_of
from jobwire.campaigns.store.table import Connection
from jobwire.errors import InvalidOption, JobwireError
from jobwire.spelling import closest

COLUMNS = ("username", "category")
LONGEST_LINE = 10_000
LONGEST_CATEGORY = 200
_BLOCK = 64 * 1024
_BOM = b"\xef\xbb\xbf"

Progress = Callable[[int, int | None], None]
"""Is called with the bytes read and the size of the file, if that is known."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that can't be imported."""

    number: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}"


OnBad = Callable[[BadLine], None]
"""Is called with each bad line."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import."""

    lines: int
    """Lines with a channel, good and bad, without the header and empty lines."""
    added: int = 0
    existing: int = 0
    """Channels that were there before. They are not changed."""
    inactive: int = 0
    """Those of the existing ones that are inactive, and stay so."""
    duplicates: int = 0
    """Lines that repeat a channel of an earlier line."""
    listed: int = 0
    """Channels that are new in the batch."""
    bad: int = 0
    bad_lines: tuple[BadLine, ...] = ()
    """The first of the bad lines."""


class ImportRefused(JobwireError, ValueError):
    """The file has bad lines. Nothing was imported."""

    def __init__(self, report: ImportReport) -> None:
        shown = "; ".join(map(str, report.bad_lines))
        more = report.bad - len(report.bad_lines)
        rest = f"; and {more:,} more" if more else ""
        super().__init__(f"{report.bad:,} of {report.lines:,} lines are bad and nothing was imported: {shown}{rest}")
        self.report = report

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.report,)


async def import_channels(
    connection: Connection,
    source: str | os.PathLike[str] | BinaryIO,
    *,
    batch: str | None = None,
    skip_bad: bool = False,
    keep_bad: int = 20,
    on_bad: OnBad | None = None,
    progress: Progress | None = None,
    schema: str = "public",
) -> ImportReport:
    """Imports a CSV file with a header, `username` or `username,category`, in UTF-8.

    Usernames are `name`, `@name` or links such as `t.me/name`. With `batch`, an id or a name, every channel of the file
    is listed in that batch, which is added if it does not exist. A bad line refuses the whole file with ImportRefused;
    with `skip_bad` the good lines are imported and the bad ones reported. `keep_bad` is how many of them are kept for
    the report, and `on_bad` is called with each of them.
    """
    checks.whole("keep_bad", keep_bad, minimum=0)
    if isinstance(source, str | os.PathLike):
        with Path(source).open("rb") as file:  # noqa: ASYNC230 - read in blocks, and others run in between
            reader = _Reader(file, keep_bad, on_bad, progress)
            return await _import(connection, reader, batch, skip_bad=skip_bad, store=store_of(schema))
    reader = _Reader(source, keep_bad, on_bad, progress)
    return await _import(connection, reader, batch, skip_bad=skip_bad, store=store_of(schema))


async def _import(
    connection: Connection, reader: _Reader, batch: str | None, *, skip_bad: bool, store: Store
) -> ImportReport:
    async with connection.transaction():
        cursor = connection.cursor()
        await cursor.execute(
            "CREATE TEMPORARY TABLE jobwire_import (line bigint, username text, category text) ON COMMIT DROP"
        )
        async with cursor.copy("COPY pg_temp.jobwire_import FROM STDIN") as copy:
            for block in reader.blocks():
                await copy.write(block)
        if reader.bad and not skip_bad:
            raise ImportRefused(reader.report())
        await cursor.execute("ANALYZE pg_temp.jobwire_import")
        [counted] = await store.channels.tuples(connection, "import", {"prefix": id_prefix()})
        listed = 0
        if batch is not None:
            its_batch = await store.batches.get_or_add(connection, batch)
            listed = await store.channels.number(connection, "import_list", {"batch_id": its_batch.id})
        await cursor.execute("DROP TABLE pg_temp.jobwire_import")
        added, existing, inactive, duplicates = counted
        return reader.report(added, existing, inactive, duplicates, listed)


class _Reader:
    """Reads the lines of a file into blocks for COPY, and keeps the first of the bad ones."""

    def __init__(self, file: BinaryIO, keep: int, on_bad: OnBad | None, progress: Progress | None) -> None:
        self._file = file
        self._keep = keep
        self._on_bad = on_bad
        self._progress = progress
        self._size = _size(file)
        self._read = 0
        self._first: list[BadLine] = []
        self.lines = 0
        self.bad = 0

    def _add_bad(self, line: BadLine) -> None:
        self.bad += 1
        if len(self._first) < self._keep:
            self._first.append(line)
        if self._on_bad is not None:
            self._on_bad(line)

    def report(
        self, added: int = 0, existing: int = 0, inactive: int = 0, duplicates: int = 0, listed: int = 0
    ) -> ImportReport:
        return ImportReport(
            self.lines, added, existing, inactive, duplicates, listed, self.bad, tuple(self._first)
        )  # fmt: skip

    def blocks(self) -> Iterator[bytes]:
        """Yields the good lines in COPY's text format, many at a time."""
        numbered = self._numbered()
        order = _header(numbered)
        block: list[str] = []
        size = 0
        for number, raw in numbered:
            if not raw.strip():
                continue
            self.lines += 1
            try:
                username, category = _channel(raw, order)
            except ValueError as reason:
                self._add_bad(BadLine(number, str(reason)))
                continue
            escaped = "\\N" if category is None else category.replace("\\", "\\\\")
            block.append(f"{number}\t{username}\t{escaped}\n")
            size += len(block[-1])
            if size >= _BLOCK:
                yield "".join(block).encode()
                block, size = [], 0
                self._report_progress()
        yield "".join(block).encode()
        self._report_progress()

    def _numbered(self) -> Iterator[tuple[int, bytes]]:
        """Yields lines with their numbers. Of a line that is too long, one byte more than the limit is kept."""
        number = 0
        while raw := self._file.readline(LONGEST_LINE + 1):
            number += 1
            self._read += len(raw)
            rest = raw
            while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
                rest = self._file.readline(LONGEST_LINE + 1)
                self._read += len(rest)
            yield number, raw

    def _report_progress(self) -> None:
        if self._progress is not None:
            self._progress(self._read, self._size)


def _size(file: BinaryIO) -> int | None:
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, AttributeError):
        return None


def _header(numbered: Iterator[tuple[int, bytes]]) -> tuple[int, int | None, int]:
    """Returns the positions of username and category, and the number of columns."""
    _, raw = next(numbered, (0, b""))
    if not raw.strip():
        raise InvalidOption("file", "", "is empty; its first line must be 'username' or 'username,category'")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidOption("file", raw[:20], "is UTF-16; save it as UTF-8")
    try:
        names = [name.strip().lower() for name in _fields(raw.removeprefix(_BOM))]
    except ValueError as reason:
        raise InvalidOption("header", raw[:80], str(reason)) from None
    for name in names:
        if name not in COLUMNS:
            near = closest(name, COLUMNS)
            hint = f"; did you mean {near}?" if near else "; the columns are username and category"
            raise InvalidOption("header", name, f"is not a column{hint}, separated by commas")
    if "username" not in names or len(set(names)) != len(names):
        raise InvalidOption("header", ",".join(names), "must be 'username' or 'username,category'")
    return names.index("username"), names.index("category") if "category" in names else None, len(names)


def _fields(raw: bytes) -> list[str]:
    if len(raw) > LONGEST_LINE:
        raise ValueError(f"is longer than {LONGEST_LINE:,} bytes")
    try:
        line = raw.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start + 1})") from None
    if "\0" in line:
        raise ValueError("has a NUL character")
    if '"' not in line:
        return line.split(",")
    try:
        [fields] = csv.reader([line], strict=True)
    except csv.Error:
        raise ValueError("has a quote that is not closed, or text after a closing quote") from None
    return fields


def _channel(raw: bytes, order: tuple[int, int | None, int]) -> tuple[str, str | None]:
    at_username, at_category, columns = order
    fields = _fields(raw)
    if len(fields) != columns:
        raise ValueError(f"has {len(fields)} fields; the header has {columns}")
    try:
        username = username_of(fields[at_username])
    except ValueError as reason:
        raise ValueError(f"username {fields[at_username][:60]!r} {reason}") from None
    category = None if at_category is None else fields[at_category].strip() or None
    if category is not None:
        if len(category) > LONGEST_CATEGORY:
            raise ValueError(f"category has {len(category):,} characters; at most {LONGEST_CATEGORY} are allowed")
        if not category.isprintable() and any(unicodedata.category(one) == "Cc" for one in category):
            raise ValueError("category has a control character")
    return username, category
