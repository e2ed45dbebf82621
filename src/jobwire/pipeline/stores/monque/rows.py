"""Turns a stored document into a row of the table `jobs`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import bson
import orjson
from bson import ObjectId, json_util

from jobwire import codec as json_codec
from jobwire.backends.monque.codec import fault_of, job_of, text_of
from jobwire.backends.monque.connection.clock import ms_of
from jobwire.backends.monque.connection.store import READABLE
from jobwire.errors import InvalidOption
from jobwire.pipeline.lake.rows import JobRow

_CARRIED = frozenset({"_id", "name", "status", "data", "createdAt", "nextRunAt", "uniqueKey", "failReason"})
_PLAIN = frozenset({str, int, bool, float, type(None), datetime})


def fingerprint(stored: bytes) -> str:
    """Returns the fingerprint of the document's own bytes, which differ after any change."""
    return hashlib.blake2b(stored, digest_size=16).hexdigest()


def decode(stored: bytes) -> dict[str, Any]:
    return bson.decode(stored, READABLE)


class Records:
    """Makes rows for one store. The name of a document is that of its queue."""

    def __init__(self, store: str, attempts: int, now: int) -> None:
        self._store = store
        self._attempts = attempts
        self._now = now

    def row(self, document: Mapping[str, Any], stored: bytes, note: Mapping[str, Any] | None) -> JobRow:
        """Returns the row of a document. Never raises, whatever is stored."""
        job = job_of(document, note, now=self._now, attempts=self._attempts)
        plain = job.data == document.get("data")
        return JobRow(
            store=self._store,
            queue=document["name"],
            id=job.id,
            name=job.name,
            state=job.state.value,
            native_state=job.native_state,
            attempts=job.attempts,
            attempts_made=min(job.attempts_made, 2**31 - 1),
            payload=json_text(job.data),
            result=None if job.result is None else json_text(job.result),
            error=job.error,
            stacktrace=job.stacktrace[-1] if job.stacktrace else None,
            progress=None if job.progress is None else json_text(job.progress),
            unique_key=text_of(document.get("uniqueKey")),
            created_at=job.created_at,
            run_at=job.run_at,
            started_at=job.started_at,
            finished_at=job.finished_at,
            worker=job.worker,
            raw=_raw(document, finished=job.state.finished, plain=plain),
            fingerprint=fingerprint(stored),
            malformed=_key_fault(document["_id"]) or fault_of(document),
        )


def json_text(value: Any) -> str:
    """Returns JSON as the codec writes it. What the codec refuses (an integer that no double holds, NaN) is written as
    nearly as JSON can."""
    try:
        return json_codec.dumps(value).decode()
    except InvalidOption:
        return orjson.dumps(value, default=str).decode()


def _raw(document: Mapping[str, Any], *, finished: bool, plain: bool) -> str:
    """Returns what no column holds, as MongoDB's extended JSON where a value has a type that JSON lacks."""
    rest = {
        field: value
        for field, value in document.items()
        if field not in _CARRIED and not (finished and field == "updatedAt")
    }
    if not plain:
        rest["data"] = document.get("data")
    if _PLAIN.issuperset(map(type, rest.values())):  # json_util takes twenty times as long
        return orjson.dumps(rest, default=_extended_date, option=orjson.OPT_PASSTHROUGH_DATETIME).decode()
    return json_util.dumps(rest, json_options=json_util.CANONICAL_JSON_OPTIONS, separators=(",", ":"))


def _extended_date(when: datetime) -> dict[str, dict[str, str]]:
    return {"$date": {"$numberLong": str(ms_of(when))}}


def _key_fault(key: Any) -> str | None:
    """Returns why the `_id` can't be found again by its text, or None if it can."""
    if isinstance(key, ObjectId) or (text_of(key) is not None and not ObjectId.is_valid(key)):
        return None
    return f"malformed job: _id is {key!r:.60} ({type(key).__name__}), neither an ObjectId nor another text"
