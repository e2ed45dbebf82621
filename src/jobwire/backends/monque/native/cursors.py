"""Reads and writes the peer's page cursors: a letter, then the position of a page's end in base64url without padding.

Sorted by identifier upwards, the position is the 12 bytes of an ObjectId. Otherwise it is JSON with the id and the
value sorted by. The peer accepts our cursors, and we accept the peer's.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from bson import ObjectId
from bson.errors import InvalidId

from jobwire.backends.monque.payload import iso
from jobwire.errors import InvalidOption

SortField = Literal["identifier", "createdAt", "updatedAt", "nextRunAt"]
_RULE = "must be a cursor of a page with the same sort"


@dataclass(frozen=True, slots=True)
class Sort:
    """The order of pages. `identifier` is the `_id`, by which jobs with the same value of another field are sorted
    too."""

    by: SortField = "identifier"
    descending: bool = False

    def __post_init__(self) -> None:
        if self.by not in ("identifier", "createdAt", "updatedAt", "nextRunAt"):
            raise InvalidOption("sort.by", self.by, "must be identifier, createdAt, updatedAt or nextRunAt")

    @property
    def plain(self) -> bool:
        return self.by == "identifier" and not self.descending

    @property
    def field(self) -> str:
        return "_id" if self.by == "identifier" else self.by


@dataclass(frozen=True, slots=True)
class Anchor:
    """The job at which a page ends. The next page begins after it."""

    id: ObjectId
    value: datetime | None = None


def write(document: dict[str, Any], sort: Sort, *, backward: bool) -> str:
    """Returns the cursor of a document."""
    key: ObjectId = document["_id"]
    if sort.plain:
        encoded = key.binary
    else:
        direction = "desc" if sort.descending else "asc"
        # Sorted by identifier downwards, the peer's value is the time of the id.
        value = key.generation_time if sort.by == "identifier" else document[sort.by]
        shown = {"id": str(key), "sort": {"by": sort.by, "direction": direction, "value": iso(value)}}
        encoded = json.dumps(shown, separators=(",", ":")).encode()
    return ("B" if backward else "F") + base64.urlsafe_b64encode(encoded).decode().rstrip("=")


def read(cursor: str, sort: Sort) -> Anchor:
    """Returns the job that a cursor names. Raises InvalidOption for the cursor of another sort."""
    try:
        if cursor[:1] not in ("F", "B"):
            raise ValueError(cursor)
        encoded = base64.urlsafe_b64decode(cursor[1:] + "=" * (-len(cursor[1:]) % 4))
        if sort.plain:
            return Anchor(ObjectId(encoded))
        shown = json.loads(encoded)
        direction = "desc" if sort.descending else "asc"
        if shown["sort"]["by"] != sort.by or shown["sort"]["direction"] != direction:
            raise ValueError(cursor)
        return Anchor(ObjectId(shown["id"]), datetime.fromisoformat(shown["sort"]["value"]))
    except (ValueError, TypeError, KeyError, InvalidId, binascii.Error) as fault:
        raise InvalidOption("cursor", cursor, _RULE) from fault
