"""Reads jobs from pg-boss's rows, and writes results and errors as pg-boss stores them."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, cast

from jobwire import codec
from jobwire.backends.pgboss.connection.rows import Row, Unreadable
from jobwire.model import Job, State

READY = {"created", "retry"}
_STATES = {
    "active": State.ACTIVE,
    "completed": State.COMPLETED,
    "cancelled": State.CANCELLED,
    "failed": State.FAILED,
}
# JSON allows these, jsonb does not: the null character, and half of a surrogate pair.
_UNSTORABLE = re.compile(rb"(?<!\\)(?:\\\\)*\\u(?:0000|[dD][89a-fA-F])")  # whole pairs are never written as escapes
CAN_NOT_HOLD = "PostgreSQL's jsonb can't hold the null character (U+0000) or half of a surrogate pair"


def storable(encoded: bytes) -> bool:
    """Returns True if jsonb can hold this JSON."""
    return b"\\u" not in encoded or _UNSTORABLE.search(encoded) is None


def output_of(result: bytes) -> bytes:
    """Returns a handler's result as pg-boss stores it: objects as they are, other values under `value`, null as
    null."""
    return result if result.startswith(b"{") or result == b"null" else b'{"value":' + result + b"}"


def failure_output(error: str, stack: str) -> bytes:
    """Returns an error in the form in which pg-boss stores a JavaScript error."""
    output = {"name": "Error", "message": error, "stack": stack or error}
    return codec.dumps({key: _clean(value) for key, value in output.items()})


def _clean(value: str) -> str:
    return value.replace("\x00", "�").encode("utf-8", "replace").decode()


def result_of(output: Any) -> Any:
    """Returns the result of a handler. Values other than objects are stored as `{"value": …}`."""
    fields = _fields(output)
    if fields is not None and len(fields) == 1 and "value" in fields and not isinstance(fields["value"], dict):
        return fields["value"]
    return output


def error_of(output: Any) -> tuple[str | None, tuple[str, ...]]:
    """Returns the message and the stack of a failure, in any form that a client may have stored."""
    if output is None:
        return None, ()
    fields = _fields(output)
    if fields is not None and "message" not in fields and "value" in fields:
        output = fields["value"]
        fields = _fields(output)
    if fields is None:
        return (output if isinstance(output, str) else _shown(output)), ()
    message, stack = fields.get("message"), fields.get("stack")
    text = str(message) if message is not None else _shown(fields)
    return text, (str(stack),) if stack else ()


def _shown(value: Any) -> str:
    """Returns compact JSON of what another client stored. Its numbers may be longer than orjson can write."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return "an output that is nested too deeply to be shown"


def _fields(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def state_of(native: str, start_after: datetime | None, now: datetime, blocked: bool) -> State:
    if native in READY:
        if blocked:
            return State.WAITING_CHILDREN
        return State.DELAYED if start_after is None or start_after > now else State.WAITING
    return _STATES.get(native, State.WAITING)


def attempts_made(native: str, retry_count: int, started: bool) -> int:
    """Returns the number of runs that have ended. `retry_count` counts claims after the first, so one is added for the
    last claim unless it still runs."""
    return retry_count + 1 if started and native != "active" else retry_count


def read_job(queue: str, row: Row) -> Job:
    """Returns the job of a row of `sql/connection/columns`, whose last column holds everything else that was stored.
    Data or output that can't be read is None, with the reason in `raw["unreadable"]`."""
    (
        job_id, native, now, data, priority, count, limit, start_after, created, started, completed, output, blocked,
        progress, rest,
    ) = row  # fmt: skip
    state = state_of(native, start_after, now, blocked)
    unread = {name: one.reason for name, one in (("data", data), ("output", output)) if isinstance(one, Unreadable)}
    data, output = (None if isinstance(one, Unreadable) else one for one in (data, output))
    rest = {"unreadable": rest.reason} if isinstance(rest, Unreadable) else rest
    error, stack = error_of(output) if state is not State.COMPLETED else (None, ())
    return Job(
        id=job_id,
        queue=queue,
        name=queue,
        data=data,
        state=state,
        native_state=native,
        priority=priority,
        # While a claim with a lease lasts, the stored limit is one higher: see `fetch.sql`.
        attempts=limit + (0 if native == "active" and rest.get("heartbeat_seconds") is not None else 1),
        attempts_made=attempts_made(native, count, started is not None),
        progress=codec.loads(progress) if progress is not None else None,
        result=result_of(output) if state is State.COMPLETED else None,
        error=error,
        stacktrace=stack,
        created_at=created,
        run_at=start_after,
        started_at=started,
        finished_at=completed,
        raw={**rest, "unreadable": unread} if unread else rest,
    )
