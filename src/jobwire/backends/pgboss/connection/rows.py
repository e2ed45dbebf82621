"""What the server sends back, as Python values. A value that Python has no place for costs itself and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from jobwire import codec
from jobwire.errors import MalformedPayload

if TYPE_CHECKING:  # the rules of the protocol, which need no driver, come to this module
    from psycopg import pq

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for JSON that jsonb holds and Python can't read: nested too deeply, or a number of too many digits."""

    reason: str


def rows_of(result: pq.abc.PGresult) -> list[Row]:
    """The rows of a result, read by the types of its columns."""
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
        pass  # a number beyond floats, which the exact reader takes, or what no reader takes
    try:
        return codec.loads(raw)
    except MalformedPayload as fault:
        return Unreadable(str(fault))


# By the number of the type; what is not here (uuid, enums) is a text.
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
