"""Converts a job's data between JSON and BSON, as the Node.js driver does.

A whole number is stored as a 32-bit integer or, beyond that, as a double. A double without a fraction is read as an
int. Types that only BSON has (dates, object ids, decimals, binary) are read as JavaScript's JSON would show them. The
stored form is in `Job.raw`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import bson
from bson import DatetimeMS, DBRef, Decimal128, ObjectId
from bson.binary import Binary

from jobwire.errors import PayloadTooLarge

MAX_DOCUMENT = 16 * 1024 * 1024
_RESERVED = 192 * 1024
"""Bytes for the fields that a job gets later, such as the message of a failure."""
LIMIT = MAX_DOCUMENT - _RESERVED
_SURELY_SMALL = 1024 * 1024
"""JSON of this size can't become a BSON document near the limit: at worst it grows about sevenfold."""
_SAFE = 2**53


def from_bson(value: Any) -> Any:
    """Returns a stored value as JSON has it."""
    kind = cast("type[object]", type(value))
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        return {key: from_bson(each) for key, each in value.items()}
    if kind is list:
        return [from_bson(each) for each in value]
    if kind is float:
        return int(value) if value.is_integer() and -_SAFE < value < _SAFE else value
    return _foreign(value)


def _foreign(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, int):  # Int64
        return int(value)
    if isinstance(value, (ObjectId, Decimal128, DatetimeMS)):
        return str(value)
    if isinstance(value, (bytes, Binary)):
        return base64.b64encode(value).decode()
    if isinstance(value, DBRef):
        return from_bson(dict(value.as_doc()))
    if isinstance(value, Mapping):
        return {str(key): from_bson(each) for key, each in cast("Mapping[Any, Any]", value).items()}
    return repr(value)


def iso(when: datetime) -> str:
    """Returns a time as JavaScript's toISOString writes it."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check_size(document: Mapping[str, Any], json_size: int) -> None:
    """Raises PayloadTooLarge, before anything is written, for a document that the server would refuse."""
    if json_size < _SURELY_SMALL:
        return
    size = len(bson.encode(document))
    if size > LIMIT:
        raise PayloadTooLarge(size, LIMIT)
