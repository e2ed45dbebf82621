"""Encodes what is stored when a run ends: the spec's Result, and the job's data with the failure counted."""

from __future__ import annotations

from typing import Any, cast

from jobwire import codec as json_codec
from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.work.retry import error_name
from jobwire.boundary import Completed, Failed

_MOST_ATTEMPTS = 50
_LONGEST_ERROR = 500
"""Of what a job's data remembers."""


def success(outcome: Completed, started_ms: int, now_ms: int, worker: bytes) -> bytes:
    """Returns the Result of a completed run. `worker` is the worker's name as JSON, encoded once for all jobs."""
    return b'{"success":true,"data":%b,%b' % (outcome.result, _ending(outcome, started_ms, now_ms, worker))


def failure(outcome: Failed, started_ms: int, now_ms: int, worker: bytes) -> bytes:
    error = {"message": outcome.error, "stack": outcome.stack, "name": error_name(outcome)}
    ending = _ending(outcome, started_ms, now_ms, worker)
    return b'{"success":false,"error":%b,%b' % (json_codec.dumps(error), ending)


def _ending(outcome: Completed | Failed, started_ms: int, now_ms: int, worker: bytes) -> bytes:
    took = round(outcome.claim.run_seconds * 1000)
    about = (now_ms, took, worker, started_ms)
    return b'"completedAt":%d,"processingTime":%d,"x":{"worker":%b,"startedAt":%d}}' % about


def with_run(
    document: codec.Document, failed: Failed, *, started_ms: int, now_ms: int, ready_ms: int, worker: str, keep_ms: int
) -> codec.Document:
    """Returns the job's data with the failed attempt among those that it remembers, in the private field `x`: the data
    is written anyway, so this costs no command. Attempts that ended more than `keep_ms` ago are left out."""
    private = codec.mapping(document.get("x"))
    stored: Any = private.get("attempts")
    before = map(codec.mapping, cast("list[Any]", stored) if isinstance(stored, list) else ())
    run = {
        "attempt": codec.attempts_made(document) + 1,
        "startedAt": started_ms,
        "endedAt": now_ms,
        "readyAt": ready_ms,
        "worker": worker,
        "name": error_name(failed),
        "error": failed.error[:_LONGEST_ERROR],
    }
    recent = [one for one in before if codec.integer(one.get("endedAt"), 0) >= now_ms - keep_ms]
    return {**document, "x": {**private, "attempts": [*recent, run][-_MOST_ATTEMPTS:]}}


def after_failure(
    document: codec.Document, *, ready_ms: int | None = None, reroute: bool = False, reset_attempts: bool = False
) -> bytes:
    """Returns the job's data with one more failed attempt, or none if it starts again at its next tick. `ready_ms` is
    when the next attempt becomes ready. With `reroute`, without the server of its target."""
    changed: dict[str, Any] = dict(document)
    changed["attempts"] = made = 0 if reset_attempts else codec.attempts_made(document) + 1
    if ready_ms is not None:
        changed["x"] = {**codec.mapping(document.get("x")), "ready": {"attempt": made + 1, "at": ready_ms}}
    if reroute:
        changed["target"] = {
            name: value for name, value in codec.mapping(document.get("target")).items() if name != "server"
        }
    return codec.rewritten(changed)
