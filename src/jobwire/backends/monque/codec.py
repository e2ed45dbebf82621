"""Reads and writes Monque's job documents.

A document has exactly the peer's fields, present when the peer has them. While one of our workers runs a job it has one
more, the sub-document `jobwire`: the token of the claim (`claim`), the worker that made it (`by`), when (`at`), the end
of its lease (`until`) and how often the job was recovered (`stalls`). Settling removes the sub-document.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from datetime import datetime
from typing import Any, cast

from bson import Code, DatetimeMS, ObjectId

from jobwire import codec as json_codec
from jobwire.backends.monque.connection.clock import moment, ms_of
from jobwire.backends.monque.payload import from_bson
from jobwire.errors import InvalidOption, MalformedPayload
from jobwire.model import Job, State

PRIVATE = "jobwire"
STATES = {
    "pending": State.WAITING,
    "processing": State.ACTIVE,
    "completed": State.COMPLETED,
    "failed": State.FAILED,
    "cancelled": State.CANCELLED,
}
_DATES = ("nextRunAt",)
_TEXTS = ("uniqueKey", "repeatInterval")
_UNREADABLE = "\ufffd"
"""The character with which the driver replaces bytes that are not UTF-8."""
_MOST = 2**31 - 2
"""Larger counts that others have stored are read as this one: one more must still fit into 32 bits."""
ONE_OFF: dict[str, Any] = {"repeatInterval": {"$in": [None, ""]}}
"""The filter of jobs that do not repeat."""


def new_document(
    name: str, data: Any, *, now: int, due: int, unique_key: str | None = None, cron: str | None = None
) -> dict[str, Any]:
    """Returns a new job, field by field as the peer makes it. A field that is not used is absent, never null."""
    created = moment(now)
    document: dict[str, Any] = {
        "_id": ObjectId(),
        "name": name,
        "data": data,
        "status": "pending",
        "nextRunAt": moment(due),
        "failCount": 0,
        "createdAt": created,
        "updatedAt": created,
    }
    if unique_key is not None:
        document["uniqueKey"] = unique_key
    if cron is not None:
        document["repeatInterval"] = cron
    return document


def key_of(job_id: str) -> Any:
    """Returns the `_id` of a job id: an ObjectId, or the text itself, since an `_id` may have been written by hand.

    Raises InvalidOption for anything else: in a query it could be an operator, which matches other jobs.
    """
    given: Any = job_id
    if not isinstance(given, (str, ObjectId)):
        raise InvalidOption("id", given, "must be the id of a job, a text")
    return ObjectId(given) if ObjectId.is_valid(given) else given


def text_of(value: object) -> str | None:
    """Returns a stored text, or None for anything else. Of the driver's types, Code is a str too, but not hashable."""
    return value if isinstance(value, str) and not isinstance(value, Code) else None


def hashable(key: Any) -> Hashable:
    """Returns an `_id` for use in sets and dicts. An `_id` may be a document, which is not hashable."""
    return key if isinstance(key, Hashable) else repr(key)


def id_fault(key: Any) -> str | None:
    """Returns the reason why a job with this `_id` can't be run, or None. Workers must be able to find the job again by
    the `_id` that they have read."""
    if isinstance(key, (ObjectId, bytes)) or (isinstance(key, int) and not isinstance(key, bool)):
        return None
    if (text := text_of(key)) is not None:
        return "malformed job: _id is not valid UTF-8" if _UNREADABLE in text else None
    return f"malformed job: _id is {_shown(key)}, not an ObjectId or a text"


def fault_of(document: Mapping[str, Any]) -> str | None:
    """Returns the reason why the document can't be run as a job, or None."""
    if text_of(document.get("name")) is None:
        return f"malformed job: name is {_shown(document.get('name'))}, not a text"
    if native_status(document) not in STATES:
        return f"malformed job: unknown status {_shown(document.get('status'))}"
    for field in ("failCount", "nextRunAt"):
        if field not in document:
            return f"malformed job: {field} is missing"
    if not isinstance(document["nextRunAt"], (datetime, DatetimeMS)):
        return f"malformed job: nextRunAt is {_shown(document['nextRunAt'])}, not a date"
    count = document["failCount"]
    if isinstance(count, bool) or not isinstance(count, (int, float)) or not math.isfinite(count) or count < 0:
        return f"malformed job: failCount is {_shown(count)}, not a count"
    for field in _TEXTS:
        value = document.get(field)
        if value is not None and text_of(value) is None:
            return f"malformed job: {field} is {_shown(value)}, not a text"
    return None


def fail_count(document: Mapping[str, Any]) -> int:
    count = document.get("failCount")
    if isinstance(count, bool) or not isinstance(count, (int, float)) or not math.isfinite(count):
        return 0
    return min(max(0, int(count)), _MOST)


def stalls_of(document: Mapping[str, Any]) -> int:
    stalls = private(document).get("stalls")
    return min(max(0, stalls), _MOST) if isinstance(stalls, int) and not isinstance(stalls, bool) else 0


def private(document: Mapping[str, Any]) -> Mapping[str, Any]:
    value = document.get(PRIVATE)
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def native_status(document: Mapping[str, Any]) -> str:
    """Returns the status, or an empty text if it is not a text."""
    return text_of(document.get("status")) or ""


def cron_of(document: Mapping[str, Any]) -> str | None:
    """Returns the cron expression of a recurring job. An empty one counts as none, as in the peer."""
    return text_of(document.get("repeatInterval")) or None


def job_of(document: Mapping[str, Any], side: Mapping[str, Any] | None, *, now: int, attempts: int) -> Job:
    """Returns the job of a document. `side` is its document in the side data. Never raises, whatever is stored."""
    status = document.get("status")
    state = STATES.get(native_status(document), State.FAILED)
    due = ms_of(document.get("nextRunAt"))
    if state is State.WAITING and due is not None and due > now:
        state = State.DELAYED
    runs = runs_of(side)
    updated = ms_of(document.get("updatedAt"))
    last: Mapping[str, Any] = runs.get(str(updated), {}) if state.finished else {}
    failures = fail_count(document)
    reason = document.get("failReason")
    name = str(document.get("name"))
    return Job(
        id=str(document.get("_id")),
        queue=name,
        name=name,
        data=from_bson(document.get("data")),
        state=state,
        native_state=str(status),
        attempts=attempts,
        attempts_made=failures + 1 if state is State.COMPLETED else failures,
        progress=json_of(side.get("progress")) if side else None,
        result=json_of(last.get("result")) if state is State.COMPLETED else None,
        error=_error(document, reason),
        stacktrace=tuple(str(run["stack"]) for _, run in sorted(runs.items()) if run.get("stack")),
        created_at=_date(document.get("createdAt")),
        run_at=_date(document.get("nextRunAt")),
        started_at=_started(document, state, last),
        finished_at=_date(document.get("updatedAt")) if state.finished else None,
        worker=_worker(document, last),
        raw=document,
    )


def runs_of(side: Mapping[str, Any] | None) -> Mapping[str, Mapping[str, Any]]:
    """Returns the recorded ends of runs, each under the `updatedAt` (in ms) that its outcome gave to the job. In the
    side data, the token of the claim follows the time."""
    runs = side.get("runs") if side else None
    if not isinstance(runs, dict):
        return {}
    found = cast("dict[str, Any]", runs)
    return {
        key.partition("-")[0]: cast("Mapping[str, Any]", run) for key, run in found.items() if isinstance(run, dict)
    }


def _error(document: Mapping[str, Any], reason: Any) -> str | None:
    if reason is not None:
        return str(reason)
    return fault_of(document) if native_status(document) not in STATES else None


def _started(document: Mapping[str, Any], state: State, last: Mapping[str, Any]) -> datetime | None:
    if state.finished:
        return _date(last.get("startedAt"))
    if state is not State.ACTIVE:
        return None
    ours = private(document)
    # Our workers renew lockedAt, so the start of their claims is stored in the sub-document.
    return _date(ours.get("at")) if ours.get("by") == document.get("claimedBy") else _date(document.get("lockedAt"))


def _worker(document: Mapping[str, Any], last: Mapping[str, Any]) -> str | None:
    worker = document.get("claimedBy", last.get("worker"))
    return None if worker is None else str(worker)


def _date(value: Any) -> datetime | None:
    return value if isinstance(value, datetime) else None


def json_of(text: Any) -> Any:
    """Returns a value that was stored as JSON text, None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        return json_codec.loads(text)
    except MalformedPayload:
        return None


def _shown(value: Any) -> str:
    shown = repr(value)
    return f"{shown[:60]}… ({type(value).__name__})" if len(shown) > 60 else f"{shown} ({type(value).__name__})"
