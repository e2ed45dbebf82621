"""Reads BridgeMQ's JSON documents into jobwire's model. `produce/encode_job.py` encodes new jobs.

jobwire's own fields are in one object `x` of a document, which peers keep and don't read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import orjson

from jobwire import codec
from jobwire.backoff import Backoff
from jobwire.errors import InvalidOption, MalformedPayload
from jobwire.model import Job, State

Document = dict[str, Any]

DEFAULT_PRIORITY = 5
FRONT_FROM = 7
DEFAULT_RETRIES = 3
DEFAULT_BACKOFF = {"type": "exponential", "delay": 2000}
ROW = 8
"""Values per job in the replies of the reading scripts: id, container, score, data, status, result, progress, claim."""

_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_STATES = {
    "waiting": State.WAITING,
    "delayed": State.DELAYED,
    "cron": State.DELAYED,
    "active": State.ACTIVE,
    "completed": State.COMPLETED,
    "failed": State.FAILED,
    "dead": State.FAILED,
}


def to_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def from_ms(value: Any) -> datetime | None:
    """Returns the time of stored milliseconds, or None if they are absent or not a valid time."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value / 1000, UTC)
        except (ValueError, OverflowError, OSError):
            return None
    return None


def rewritten(document: Mapping[str, Any]) -> bytes:
    """Returns stored data as JSON after changes. Numbers of a peer that JavaScript can't represent stay as they are."""
    try:
        return codec.dumps(document)
    except InvalidOption:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def encode_progress(value: bytes) -> bytes:
    """Returns the spec's progress document for any JSON value: a number is the percentage, a text the message, any
    other value the data. The script adds `updatedAt`."""
    seen = codec.loads(value)
    document: Document = {"percent": 0}
    if isinstance(seen, (int, float)) and not isinstance(seen, bool):
        document["percent"] = seen
    elif isinstance(seen, str):
        document |= {"message": seen, "x": {"only": "message"}}
    elif _is_native_progress(seen):
        document = dict(cast(Document, seen))
    else:
        document |= {"data": seen, "x": {"only": "data"}}
    return codec.dumps(document, field="progress")


def _is_native_progress(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    fields = cast(Document, value)
    percent = fields.get("percent")
    return fields.keys() <= {"percent", "message", "data"} and isinstance(percent, (int, float)) and len(fields) > 1


def load(raw: bytes) -> Any:
    """Returns any JSON value. Raises MalformedPayload if it is not JSON. Searches the text for numbers that are too
    long for orjson, which is quicker than searching the decoded value."""
    if _LONG_NUMBER.search(raw) is None:
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass
    return codec.loads(raw)


def parse(raw: bytes) -> Document | None:
    """Returns a JSON object, or None for anything else."""
    try:
        value = load(raw)
    except MalformedPayload:
        return None
    return cast(Document, value) if isinstance(value, dict) else None


def read_row(queue: str, row: Sequence[bytes]) -> Job | None:
    """Returns the job of a row of the reading scripts, or None if there is no job or its type is another one."""
    job_id, container, score, data, status, result, progress, claim = row
    document = parse(data) if data else None
    if document is None:
        return _unreadable(queue, row) if data and container in (b"dead", b"failed") else None
    if document.get("type") != queue:
        return None
    native = status.decode(errors="replace") or container.decode()
    state = _STATES.get(container.decode(), State.WAITING)
    due = from_ms(float(score)) if score else None
    _, started, _, worker = [*claim.decode(errors="replace").split("|", 3), "", "", ""][:4]
    return read_job(
        queue,
        job_id.decode(errors="replace"),
        document,
        state,
        native_state=container.decode() if container in (b"waiting", b"active") else native,
        result=parse(result) if result else None,
        progress=parse(progress) if progress else None,
        run_at=due,
        started_ms=int(started) if started.isdigit() and worker else None,
        worker=worker or None,
    )


def _unreadable(queue: str, row: Sequence[bytes]) -> Job:
    """Returns a dead job whose data can't be read. Its type is unknown too, so it is returned for any queue."""
    job_id, container, _, data, _, result, _, _ = row
    job = read_job(
        queue,
        job_id.decode(errors="replace"),
        {},
        State.FAILED,
        native_state=container.decode(),
        result=parse(result) if result else None,
    )
    return replace(job, raw={"data": data})


def read_job(
    queue: str,
    job_id: str,
    document: Document,
    state: State,
    *,
    native_state: str,
    result: Document | None = None,
    progress: Document | None = None,
    run_at: datetime | None = None,
    started_ms: int | None = None,
    worker: str | None = None,
) -> Job:
    """Returns the job of a document. Fields of a wrong type count as absent."""
    made = attempts_made(document)
    outcome = result or {}
    error = mapping(outcome.get("error"))
    about = mapping(outcome.get("x"))
    ended = state.finished
    failed = outcome.get("success") is False
    message = error.get("message")
    return Job(
        id=job_id,
        queue=queue,
        name=queue,
        data=document.get("payload"),
        state=state,
        native_state=native_state,
        priority=integer(document.get("priority"), DEFAULT_PRIORITY) or DEFAULT_PRIORITY,
        attempts=retries(document) + 1,
        attempts_made=made + 1 if state is State.COMPLETED else made,
        progress=_progress(progress) if progress is not None else None,
        result=outcome.get("data") if state is State.COMPLETED else None,
        error=str(message) if failed and message is not None else None,
        stacktrace=(str(error["stack"]),) if failed and error.get("stack") else (),
        created_at=from_ms(document.get("createdAt")),
        run_at=run_at,
        started_at=from_ms(about.get("startedAt")) if ended else from_ms(started_ms),
        finished_at=from_ms(outcome.get("completedAt")) if ended else None,
        worker=str(about["worker"]) if ended and about.get("worker") else worker,
        raw=document,
    )


def attempts_made(document: Mapping[str, Any]) -> int:
    """Returns how often the job has failed. What is not a count is 0, so that its attempts come to an end."""
    return max(0, integer(document.get("attempts"), 0))


def retries(document: Mapping[str, Any]) -> int:
    """Returns how often a failed job may run again, by default as often as in the peer."""
    retry = document.get("retry")
    if retry is None:
        return DEFAULT_RETRIES
    return max(0, integer(mapping(retry).get("attempts"), DEFAULT_RETRIES))


def _progress(stored: Document) -> Any:
    only = mapping(stored.get("x")).get("only")
    if only in ("message", "data"):
        return stored.get(only)
    shown = {name: stored[name] for name in ("percent", "message", "data") if name in stored}
    return shown.get("percent") if shown.keys() <= {"percent"} else shown


def backoff_rule(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the stored backoff, or the peer's default for a job without retry options."""
    return mapping(mapping(document["retry"]).get("backoff") if "retry" in document else DEFAULT_BACKOFF)


def backoff_of(document: Mapping[str, Any]) -> Backoff | None:
    """Returns the backoff as jobwire's Backoff. Raises InvalidOption for one that it can't express.

    >>> backoff_of({"retry": {"backoff": {"type": "linear", "delay": 1500, "maxDelay": 9000}}})
    Backoff(kind='linear', delay=1.5, jitter=0.0, cap=9.0, name='')
    """
    rule = backoff_rule(document)
    delay, cap = number(rule.get("delay")), number(rule.get("maxDelay"))
    if delay is None or delay <= 0:
        return None
    kind = rule.get("type")
    return Backoff(
        kind if kind in ("linear", "exponential") else "fixed",  # workers treat any other type as fixed
        delay / 1000,
        0.25 if rule.get("jitter") is True else 0.0,
        None if cap is None else cap / 1000,
    )


def timeout_of(document: Mapping[str, Any]) -> float | None:
    """Returns how many seconds a run may take, or None if the job has no limit of its own."""
    stored = number(mapping(document.get("x")).get("timeoutMs"))
    return stored / 1000 if stored is not None and stored > 0 else None


def schedule_key(job_id: str, document: Mapping[str, Any]) -> str:
    """Returns the key of a cron job's schedule: the job's own id if a peer made it."""
    return str(mapping(document.get("x")).get("cronKey") or job_id)


def mapping(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def number(value: Any) -> float | None:
    """Returns a finite number as float, or None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            return None
        return found if math.isfinite(found) else None
    return None


def integer(value: Any, default: int) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return int(value)
        except (ValueError, OverflowError):
            return default
    return default
