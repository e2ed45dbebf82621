"""The options in a job's hash that a worker needs (`opts`, JSON with some short names)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from jobwire import codec
from jobwire.errors import MalformedPayload
from jobwire.options import Keep

Kept = tuple[str, str]
"""Number of finished jobs to keep, and seconds to keep them, as arguments of the scripts. '' means without limit."""
KEEP_ALL: Kept = ("", "")


@dataclass(frozen=True, slots=True)
class StoredBackoff:
    """A backoff as the producer stored it: `type`, `delay` in ms and `jitter`."""

    kind: str
    delay: float = 0.0
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class StoredOptions:
    attempts: int = 0
    backoff: StoredBackoff | None = None
    lifo: bool = False
    keep_completed: Kept | None = None
    keep_failed: Kept | None = None
    stack_limit: int | None = None
    trace: str = ""
    """The trace context of the producer's telemetry, as the producer wrote it."""


DEFAULTS = StoredOptions()


@lru_cache(maxsize=2048)
def read_options(raw: bytes) -> StoredOptions:
    """Returns the options that any producer stored. A value of an unexpected type counts as not given."""
    try:
        found: Any = codec.loads(raw)
    except MalformedPayload:
        return DEFAULTS
    if not isinstance(found, dict):
        return DEFAULTS
    opts = cast(dict[str, Any], found)
    stack_limit, trace = number(opts.get("stackTraceLimit")), opts.get("tm")
    return StoredOptions(
        attempts=int(number(opts.get("attempts")) or 0),
        backoff=_backoff(opts.get("backoff")),
        lifo=bool(opts.get("lifo")),
        keep_completed=_kept(opts.get("removeOnComplete")),
        keep_failed=_kept(opts.get("removeOnFail")),
        stack_limit=None if stack_limit is None else max(0, int(stack_limit)),
        trace=trace if isinstance(trace, str) else "",
    )


def kept(keep: Keep) -> Kept:
    """Returns a worker's own rule as arguments of the scripts."""
    age = keep.age if keep.age is None or isinstance(keep.age, (int, float)) else keep.age.total_seconds()
    return ("" if keep.count is None else str(keep.count), "" if age is None else f"{age:.17g}")


def number(value: Any) -> float | None:
    """Returns a finite number, or None for anything else, including booleans."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return value
    return None


def _kept(value: Any) -> Kept | None:
    """Reads removeOnComplete or removeOnFail: true keeps no job, false all, a number that many, an object by count and
    age."""
    if value is None:
        return None
    if isinstance(value, bool):
        return ("0", "") if value else KEEP_ALL
    if isinstance(value, dict):
        rule = cast(dict[str, Any], value)
        count, age = number(rule.get("count")), number(rule.get("age"))
        return ("" if count is None else str(int(count)), "" if age is None else f"{age:.17g}")
    count = number(value)
    return None if count is None else (str(int(count)), "")


def _backoff(value: Any) -> StoredBackoff | None:
    """Reads a backoff: an object with a type, or a number of ms (written by old producers)."""
    if isinstance(value, dict):
        rule = cast(dict[str, Any], value)
        jitter = min(max(number(rule.get("jitter")) or 0.0, 0.0), 1.0)
        return StoredBackoff(str(rule.get("type", "")), number(rule.get("delay")) or 0.0, jitter)
    delay = number(value)
    return StoredBackoff("fixed", delay) if delay else None
