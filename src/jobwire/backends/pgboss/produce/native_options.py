"""The options of a job by pg-boss's names, as Node takes them from callers and stores them in schedules."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jobwire.checks import seconds
from jobwire.options import NewJob

_ABSOLUTE = re.compile(r"\d{4}-\d{2}-\d{2}|.*Z$")
_ZONED = re.compile(r"(?:Z|[+-]\d{2}:?\d{2})$")
COLUMNS = {
    "id": "id",
    "priority": "priority",
    "retryLimit": "retry_limit",
    "retryDelay": "retry_delay",
    "retryBackoff": "retry_backoff",
    "retryDelayMax": "retry_delay_max",
    "expireInSeconds": "expire_seconds",
    "retentionSeconds": "retention_seconds",
    "deleteAfterSeconds": "deletion_seconds",
    "deadLetter": "dead_letter",
    "heartbeatSeconds": "heartbeat_seconds",
    "singletonSeconds": "singleton_seconds",
    "singletonOffset": "singleton_offset",
    "singletonNextSlot": "singleton_next_slot",
    "singletonKey": "singleton_key",
    "groupId": "group_id",
    "groupTier": "group_tier",
}
"""The column of each option that is stored as it is given."""


def columns_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the columns of `sql/produce/insert` for the options. Skips unknown options, as pg-boss does."""
    row = {column: options[name] for name, column in COLUMNS.items() if options.get(name) is not None}
    group = options.get("group")
    if isinstance(group, Mapping):
        row["group_id"], row["group_tier"] = group.get("id"), group.get("tier")  # pyright: ignore[reportUnknownMemberType]
    return row | start_of(options.get("startAfter"))


def start_of(value: Any) -> dict[str, Any]:
    """Returns the column for the start of a job, given as a number of seconds, as a time (UTC if it has no zone) or as
    an interval of PostgreSQL.

    >>> start_of("2030-01-01 10:00"), start_of("90"), start_of("5 minutes")
    ({'run_at': '2030-01-01 10:00Z'}, {'delay': 90.0}, {'after': '5 minutes'})
    """
    if value is None or value == "":
        return {}
    if isinstance(value, (int, float)):
        return {"delay": max(float(value), 0.0)}
    text = str(value)
    try:
        return {"delay": max(float(text), 0.0)}
    except ValueError:
        pass
    if _ABSOLUTE.match(text):
        return {"run_at": text if _ZONED.search(text) and len(text) > 10 else f"{text}Z"}
    return {"after": text}


def is_plain(job: NewJob) -> bool:
    """Returns True if the job has nothing but data."""
    return not (
        job.extra
        or job.id is not None
        or job.priority is not None
        or job.run_at is not None
        or job.delay is not None
        or job.attempts is not None
        or job.backoff is not None
        or job.timeout is not None
        or job.expires is not None
        or job.unique is not None
    )


def are_alike(jobs: Sequence[NewJob]) -> bool:
    """Returns True if the jobs differ in data and times only, and none has an id, a key or native options."""
    first = jobs[0]
    return all(
        not job.extra
        and job.id is None
        and job.unique is None
        and job.delay is None
        and job.priority == first.priority
        and job.attempts == first.attempts
        and job.backoff == first.backoff
        and job.timeout == first.timeout
        and job.expires == first.expires
        for job in jobs
    )


def options_of(job: NewJob) -> dict[str, Any]:
    """Returns the options of a job by pg-boss's names."""
    options: dict[str, Any] = {}
    if job.id is not None:
        options["id"] = job.id
    if job.priority is not None:
        options["priority"] = job.priority
    if job.run_at is not None:
        options["startAfter"] = job.run_at.isoformat()
    elif job.delay is not None:
        options["startAfter"] = seconds("delay", job.delay)
    if job.attempts is not None:
        options["retryLimit"] = job.attempts - 1
    if job.backoff is not None:
        options["retryDelay"] = math.ceil(job.backoff.delay)
        options["retryBackoff"] = job.backoff.kind == "exponential"
        if job.backoff.cap is not None:
            options["retryDelayMax"] = math.ceil(job.backoff.cap)
    if job.timeout is not None:
        options["expireInSeconds"] = math.ceil(seconds("timeout", job.timeout))
    if job.expires is not None:
        options["retentionSeconds"] = math.ceil(seconds("expires", job.expires))
    if job.unique is not None:
        options["singletonKey"] = job.unique.key
    return options | job.extra
