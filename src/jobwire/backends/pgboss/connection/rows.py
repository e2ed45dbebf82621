"""Reads the server's replies as Python values. A value that Python can't hold becomes None or Unreadable, and the rest
of the row is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from jobwire import codec
from jobwire.errors import MalformedPayload

if TYPE_CHECKING:  # the protocol's rules import this module, and they must work without the driver
    from psycopg import pq

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value of jsonb that Python can't read: nested too deeply, or with a number of too many digits."""

    reason: str


def rows_of(result: pq.abc.PGresult) -> list[Row]:
    """Returns the rows of a result, each value read by the type of its column."""
    count = result.ntuples
    if not count:
        return []
    value = result.get_value
    rows = range(count)
    columns: list[list[Any]] = []
    for column in range(result.nfields):
        read = _READERS.get(result.ftype(column), _text)
        columns.append([None if (raw := value(row, column)) is None else read(raw) for row in rows])
    return list(zip(*columns, strict=True))


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _flag(raw: bytes) -> bool:
    return raw == b"t"


def _moment(raw: bytes) -> datetime | None:
    try:
        return datetime.fromisoformat(raw.decode())
    except ValueError:  # infinity, or a year that Python has no number for
        return None


def _whole_numbers(raw: bytes) -> list[int | None]:
    inside = raw[1:-1]
    return [None if part == b"NULL" else int(part) for part in inside.split(b",")] if inside else []


def _json(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except (ValueError, RecursionError):
        pass  # a number beyond floats, which the exact reader below can read, or something that none can read
    try:
        return codec.loads(raw)
    except MalformedPayload as fault:
        return Unreadable(str(fault))


# By the number of the type. Types that are not listed (uuid, enums) are read as text.
_READERS: dict[int, Callable[[bytes], Any]] = {
    16: _flag,
    20: int,
    21: int,
    23: int,
    700: float,
    701: float,
    1700: float,
    1184: _moment,
    1007: _whole_numbers,
    114: _json,
    3802: _json,
}
