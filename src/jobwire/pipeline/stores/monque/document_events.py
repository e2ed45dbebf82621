"""Derives events from a document, or from a change of one.

Both lead to the same events with the same ids, `<job id>:<kind>:<milliseconds>`, so that an event that is read from
both counts once. The time is the one that the change itself wrote, by the clock of the client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from jobwire.backends.monque.codec import PRIVATE, STATES, cron_of, fail_count, fault_of, job_of, runs_of
from jobwire.backends.monque.connection.clock import moment, ms_of
from jobwire.backends.monque.payload import from_bson
from jobwire.error_class import exception_line
from jobwire.pipeline.stores.monque.rows import json_text

Fields = Mapping[str, Any]


class JobEvent(NamedTuple):
    """One event, without the names of store and queue."""

    id: str
    kind: str
    job_id: str | None
    at: datetime | None
    data: str
    malformed: str | None = None


def by_document(document: Fields, note: Fields | None = None) -> Iterator[JobEvent]:
    """Yields the event of the job's creation, those of the runs that its side data holds, and that of its present
    status."""
    key, created, updated = document["_id"], document.get("createdAt"), document.get("updatedAt")
    if not isinstance(created, datetime) or not isinstance(updated, datetime):
        yield _malformed(document, "its createdAt and updatedAt are not both dates")
        return
    if document.get("status") not in STATES:
        yield _malformed(document, fault_of(document) or "unknown status")
        return
    # After a failure, nextRunAt is the due time of the next attempt.
    yield _event(key, "added", created, due=None if fail_count(document) else document.get("nextRunAt"))
    yield from _recorded(key, document, note)
    if document["status"] != "pending" or updated > created:
        yield _standing(key, document, document, updated)


def by_change(change: Fields, document: Fields) -> Iterator[JobEvent]:
    """Yields the events of a change. `document` is the job as it was looked up, or as it was inserted."""
    key, kind = change["documentKey"]["_id"], change["operationType"]
    if kind == "delete":
        yield _event(key, "removed", _wall(change))
        return
    if kind != "update":
        yield from by_document(document)
        return
    description: Fields = change["updateDescription"]
    fields: Fields = description["updatedFields"]
    at = fields.get("updatedAt")
    if not isinstance(at, datetime):
        at = _wall(change)
    let_go = fields.get("status") == "pending" and "claimedBy" in description.get("removedFields", ())
    if let_go and cron_of(document) and "nextRunAt" in fields and fail_count(fields) == 0:
        yield _event(key, "completed", at)  # a recurring job: due again at once
    if "status" in fields:
        yield _standing(key, fields, document, at)
    else:
        yield _event(key, "rescheduled", at, due=fields.get("nextRunAt"))


def _recorded(key: Any, document: Fields, note: Fields | None) -> Iterator[JobEvent]:
    """Yields the starts of the runs that our workers have recorded, and the failures that another attempt followed.
    The end of the last run is in the document itself."""
    ended = ms_of(document.get("updatedAt"))
    for at_ms, run in runs_of(note).items():
        started = run.get("startedAt")
        if not at_ms.isdigit() or not isinstance(started, datetime):
            continue
        yield _event(key, "active", started, worker=run.get("worker"))
        if run.get("stack") and int(at_ms) != ended:
            error = exception_line(str(run["stack"]))
            yield _event(key, "retried", moment(int(at_ms)), due=run.get("nextRunAt"), error=error or None)


def _standing(key: Any, fields: Fields, document: Fields, at: datetime) -> JobEvent:
    """Returns the event of a status. `fields` are those that were written with it: all, if that is unknown."""
    due = fields.get("nextRunAt", document.get("nextRunAt"))
    error = fields.get("failReason", document.get("failReason"))
    match fields["status"]:
        case "processing":
            # Heartbeats change updatedAt, and ours lockedAt too: the claim has a time of its own.
            started = job_of({"_id": key, **fields}, None, now=0, attempts=1).started_at
            return _event(key, "active", started or at, worker=fields.get("claimedBy"))
        case "pending":
            private = fields.get(PRIVATE)
            if isinstance(private, dict) and "recovery" in private:
                return _event(key, "stalled", at, due=due)
            if fail_count(fields) > 0:
                return _event(key, "retried", at, due=due, error=error)
            later = isinstance(due, datetime) and due > at
            return _event(key, "delayed" if later else "waiting", at, due=due)
        case "failed":
            return _event(key, "failed", at, error=error)
        case status if status in STATES:
            return _event(key, str(status), at)
        case status:
            return _malformed({**document, "_id": key, "status": status}, fault_of({"status": status}) or "")


def _event(key: Any, kind: str, at: datetime, **data: Any) -> JobEvent:
    job_id = str(key)
    known = {name: from_bson(value) for name, value in data.items() if value is not None}
    return JobEvent(f"{job_id}:{kind}:{ms_of(at)}", kind, job_id, at, json_text(known))


def _malformed(document: Fields, reason: str) -> JobEvent:
    job_id = str(document["_id"])
    status = document.get("status")
    data = json_text(from_bson({"status": status, "createdAt": document.get("createdAt")}))
    return JobEvent(f"{job_id}:malformed:{status}", str(status), job_id, None, data, reason)


def gap(after: int, before: int) -> JobEvent:
    """Returns the event for changes between two times, in milliseconds, that the server no longer has."""
    return JobEvent(f"gap:{after}:{before}", "gap", None, None, json_text({"after": after, "before": before}))


def _wall(change: Fields) -> datetime:
    wall = change.get("wallTime")
    return wall if isinstance(wall, datetime) else change["clusterTime"].as_datetime()
