"""The options that a schedule stores for its jobs, as a job to add."""

from __future__ import annotations

import warnings
from typing import Any, cast

from jobwire import codec as json_codec
from jobwire.backends.bullmq.work.stored_options import Kept, StoredBackoff, number, read_options
from jobwire.backoff import Backoff
from jobwire.errors import MalformedPayload
from jobwire.model import Schedule
from jobwire.options import Keep, NewJob

_EXTRA = {"stackTraceLimit": "stackTraceLimit", "kl": "keepLogs"}
"""The name in the store, and the name of the option."""


def job_of(schedule: Schedule) -> NewJob:
    """Returns a job like those that the schedule makes. A stored value of an unexpected type counts as not given."""
    raw: Any = schedule.raw.get("opts") or b"{}"
    found, written = read_options(raw), _object(raw)
    priority, extra = number(written.get("priority")), dict[str, Any]()
    for stored, option in _EXTRA.items():
        if (value := number(written.get(stored))) is not None:
            extra[option] = int(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a large number to keep is the schedule's, and was warned about
        return NewJob(
            schedule.data,
            schedule.name,
            priority=None if priority is None else int(priority),
            attempts=found.attempts or None,
            backoff=None if found.backoff is None else _backoff(found.backoff),
            keep_completed=None if found.keep_completed is None else _keep(found.keep_completed),
            keep_failed=None if found.keep_failed is None else _keep(found.keep_failed),
            lifo=found.lifo,
            extra=extra,
        )


def _backoff(stored: StoredBackoff) -> Backoff:
    """Any type but the two built-in ones is the name of a strategy, which the worker supplies."""
    if stored.kind in ("fixed", "exponential"):
        return Backoff(stored.kind, stored.delay / 1000, stored.jitter)
    return Backoff.custom(stored.kind, stored.delay / 1000)


def _keep(stored: Kept) -> Keep:
    """A count below 0 keeps all, as no count does."""
    count, age = (float(text) if text else None for text in stored)
    return Keep(None if count is None or count < 0 else int(count), age)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json_codec.loads(raw)
    except MalformedPayload:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
