"""BullMQ's capabilities, and the rules for its jobs. Needs no driver."""

from __future__ import annotations

import re
import time
from typing import Any, cast

from jobwire.backends.bullmq import codec
from jobwire.backends.bullmq.keys import DEFAULT_PREFIX, check_queue_name
from jobwire.backends.rules import Rules
from jobwire.boundary import ALL_SCHEDULES, ALL_UNIQUE, Capabilities, Feature
from jobwire.checks import whole
from jobwire.errors import InvalidOption, NotSupported
from jobwire.options import NewJob
from jobwire.protocols import PROTOCOLS

_HAS = frozenset(
    {
        Feature.JOB_NAMES,
        Feature.PRIORITIES,
        Feature.LIFO,
        Feature.ATTEMPTS,
        Feature.BACKOFF_FIXED,
        Feature.BACKOFF_EXPONENTIAL,
        Feature.BACKOFF_CUSTOM,
        Feature.KEEP,
        *ALL_UNIQUE,
        Feature.FLOWS,
        Feature.DEPENDENCIES,
        Feature.PROGRESS,
        Feature.LOGS,
        Feature.RESULTS,
        Feature.EVENTS,
        Feature.PAUSE,
        Feature.BULK,
        Feature.EDITS,
        Feature.EVENT_CONTROL,
        *ALL_SCHEDULES,
        Feature.RATE_LIMIT,
        Feature.THROTTLE,
        Feature.LIMITS,
        Feature.TRACES,
        Feature.WORKERS,
        Feature.QUEUES,
        Feature.DIAGNOSIS,
    }
)
_NEAREST = {
    Feature.KEY_LIMITS: "use a queue per key, each with its own limit",
    Feature.BACKOFF_LINEAR: "use Backoff.custom(name) with a strategy of the worker",
    Feature.TIMEOUTS: "give the worker timeout=…",
    Feature.CANCEL: "remove(id) takes it out of the queue",
    Feature.EXPIRY: "remove(id) takes a job out of the queue",
    Feature.ROUTING: "use one queue per group of workers",
    Feature.TRANSACTIONAL_ADD: "add after the transaction has been committed",
}
CAPABILITIES = Capabilities(
    protocol=PROTOCOLS["bullmq"].name,
    features=_HAS,
    priority="low_first",
    default_attempts=1,
    no_data=b"{}",
    nearest=_NEAREST,
)

MAX_PRIORITY = 2_097_151
"""One below 2^21. BullMQ 5 accepts 2^21 too, but scores of that size are too large to order jobs exactly."""

_INTEGER = re.compile(r"-?\d+", re.ASCII)
_RESERVED = frozenset(
    (
        *("id", "meta", "wait", "paused", "prioritized", "pc", "delayed", "active", "completed", "failed", "marker"),
        *("waiting-children", "events", "stalled", "stalled-check", "limiter", "repeat", "priority", "delay"),
        *("metrics:completed:data", "metrics:failed:data"),
    )
)
_EXTRA = {"stackTraceLimit": 0, "keepLogs": 0, "timestamp": 0}
TELEMETRY = "telemetry"
_KEEP_LAST = "keepLastIfActive"
_NO_KEEP_LAST = (
    "a worker older than 5.72 that finishes the running job would never add the kept one. Wait for the running job "
    "(queue.wait) and add then"
)
WAITING_CHILDREN = "waitingChildren"
"""An option of jobwire: the job does not run before children that name it as their parent have finished."""


def check(prefix: str, job: NewJob) -> bytes:
    """Raises for options that BullMQ's own clients refuse, and for those that would break a queue although they accept
    them. Returns the options as they will be stored."""
    if job.plain:
        return codec.PLAIN_OPTS
    if job.id is not None:
        check_id(job.id)
    if job.priority is not None and not 0 <= job.priority <= MAX_PRIORITY:
        raise InvalidOption("priority", job.priority, f"must lie between 0 (first of all) and {MAX_PRIORITY}")
    if job.backoff is not None and job.backoff.cap is not None:
        raise InvalidOption(
            "backoff.cap", job.backoff.cap, "can't be stored in a BullMQ job; give the worker max_backoff"
        )
    if job.parent is not None:
        check_queue_name(job.parent.queue)
    for option, value in job.extra.items():
        if option == WAITING_CHILDREN:
            if not isinstance(value, bool):
                raise InvalidOption(f"extra.{option}", value, "must be true or false")
        elif option == _KEEP_LAST:
            raise NotSupported("BullMQ", f"{_KEEP_LAST} in version 5.62", _NO_KEEP_LAST)
        elif option == TELEMETRY:
            if not _is_telemetry(value):
                raise InvalidOption(f"extra.{option}", value, "must be a dict with metadata, the trace as text")
        elif option in _EXTRA:
            whole(f"extra.{option}", value, minimum=_EXTRA[option])
        else:
            known = ", ".join([*_EXTRA, TELEMETRY, WAITING_CHILDREN])
            raise InvalidOption(f"extra.{option}", value, f"is not an option of a BullMQ job; known are {known}")
    return codec.encode_opts(job, delay_ms(job, time.time()), prefix)


def _is_telemetry(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get("metadata"), str)


def delay_ms(job: NewJob, now: float) -> int:
    return 0 if job.delay is None and job.run_at is None else codec.milliseconds(job.delay_at(now))


def check_id(job_id: str) -> None:
    """Raises InvalidOption for an id that BullMQ's own clients refuse, or that would break a queue."""
    if _INTEGER.fullmatch(job_id):
        raise InvalidOption("id", job_id, "must not be an integer: BullMQ numbers jobs itself")
    if job_id.startswith("0:"):
        raise InvalidOption("id", job_id, "must not start with '0:', which BullMQ reads as a marker")
    if ":" in job_id and len(job_id.split(":")) != 3:
        raise InvalidOption("id", job_id, "must not contain ':' (BullMQ allows it in ids of three parts only)")
    if job_id in _RESERVED:
        raise InvalidOption("id", job_id, "is the name of one of BullMQ's own keys")


def _check_in_queue(queue: str, job: NewJob) -> None:
    check_queue_name(queue)
    check(DEFAULT_PREFIX, job)


RULES = Rules(
    CAPABILITIES,
    _check_in_queue,
    lambda job: None,
    lambda settings: check_queue_name(settings.queue),
    rank=lambda priority: (priority, False),
)
