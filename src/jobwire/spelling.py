"""Suggestions for names of options that don't exist.

>>> raise unknown("concurency", 3, ["concurrency", "lease"], "a Worker")
Traceback (most recent call last):
    ...
jobwire.errors.InvalidOption: concurency: is not an option of a Worker; did you mean concurrency? (got 3)
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from jobwire.errors import InvalidOption

_JOB = {
    "jobid": "id",
    "removeoncomplete": "keep_completed",
    "removeonfail": "keep_failed",
    "attempt": "attempts",
    "retrylimit": "attempts, which counts the first run too",
    "retries": "attempts, which counts the first run too",
    "maxretries": "attempts, which counts the first run too",
    "maxattempts": "attempts",
    "retrydelay": "backoff=Backoff.fixed(seconds)",
    "retrybackoff": "backoff=Backoff.exponential(seconds)",
    "startafter": "delay (in seconds) or run_at",
    "delayms": "delay, in seconds",
    "countdown": "delay",
    "eta": "run_at",
    "scheduledfor": "run_at",
    "singletonkey": "unique=Unique(key)",
    "uniquekey": "unique=Unique(key)",
    "deduplication": "unique=Unique(key)",
    "debounce": "unique=Unique(key)",
    "repeat": "queue.schedule()",
    "cron": "queue.schedule()",
    "every": "queue.schedule()",
    "pattern": "queue.schedule()",
    "expireinseconds": "timeout",
    "ttl": "expires, or Unique(key, ttl=…)",
    "failparentonfailure": 'parent=Parent(id, queue, on_failure="fail")',
    "payload": "data, the first argument",
    "connection": "transaction=…, which queue.add and queue.add_many take",
    "children": "FlowJob(children=…)",
}
_WORKER = {
    "lockduration": "lease",
    "locktimeout": "lease, or native=MonqueWorker(lock_timeout=…)",
    "stalledinterval": "recover_every",
    "maxstalledcount": "max_stalled",
    "limiter": "rate=Rate(jobs, per=seconds)",
    "ratelimit": "rate=Rate(jobs, per=seconds)",
    "teamsize": "concurrency",
    "localconcurrency": "concurrency",
    "maxworkers": "concurrency",
    "removeoncomplete": "keep_completed",
    "removeonfail": "keep_failed",
    "backoffstrategy": "backoff",
    "attempts": "queue.add(attempts=…)",
    "id": "worker_id",
    "jobtimeout": "timeout",
    "pollingintervalseconds": "native=PgBossWorker(poll=…)",
}
_ADD_MANY = {"connection": "transaction"}
_PEERS: Mapping[str, Mapping[str, str]] = {
    "a job": _JOB, "a schedule": _JOB, "a task": _JOB, "a Worker": _WORKER, "add_many": _ADD_MANY,
}  # fmt: skip
"""Names of other libraries, in lower case without underscores, and ours for the same."""


def unknown(
    field: str, value: object, known: Iterable[str], what: str, nearest: str = "", *, word: str = "option"
) -> InvalidOption:
    """Returns the error for an option that `what` does not have. `nearest` is the suggestion, if the caller has one.
    `word` is used instead of "option"."""
    names = list(known)
    meant = nearest or _PEERS.get(what, {}).get(_bare(field), "") or closest(field, names)
    hint = f"did you mean {meant}?" if meant else f"known are {', '.join(names) or 'none'}"
    return InvalidOption(field, value, f"is not {'an' if word == 'option' else 'a'} {word} of {what}; {hint}")


def closest(name: str, known: Iterable[str]) -> str:
    """Returns the known name most similar to this one, ignoring case and underscores, or an empty string.

    >>> closest("maxStalled", ["max_stalled", "lease"]), closest("colour", ["max_stalled", "lease"])
    ('max_stalled', '')
    """
    by_bare = {_bare(one): one for one in known}
    found = difflib.get_close_matches(_bare(name), by_bare, n=1, cutoff=0.7)
    return by_bare[found[0]] if found else ""


def _bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
