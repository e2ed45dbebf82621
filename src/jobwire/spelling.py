"""Suggestions for names of options that don't exist.

>>> raise unknown("concurency", 3, ["concurrency", "lease"], "a Worker")
Traceback (most recent call last):
    ...
jobwire.errors.InvalidOption: concurency: is not an option of a Worker; did you mean concurrency? (got 3)
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from jobwire.errors import InvalidOption

Target = TypeVar("Target", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=type)
_NO_HINTS: Mapping[str, str] = {}

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


def refuses_typos(what: str, hints: Mapping[str, str] = _NO_HINTS) -> Callable[[Target], Target]:
    """Makes a function or class refuse a keyword that it does not have by InvalidOption, with a suggestion, in place of
    Python's TypeError. `hints` has suggestions for names that belong elsewhere.

    >>> @refuses_typos("a wait")
    ... def wait(*, timeout: float) -> None: ...
    >>> wait(tmeout=5)
    Traceback (most recent call last):
        ...
    jobwire.errors.InvalidOption: tmeout: is not an option of a wait; did you mean timeout? (got 5)
    """

    def decorate(target: Target) -> Target:
        made: Any = target
        if isinstance(made, type):
            setattr(made, "__init__", _checked(getattr(made, "__init__"), what, hints))  # noqa: B009, B010 - it is a type
            return target
        return _checked(made, what, hints)

    return decorate


def methods_refuse_typos(what: str, *names: str) -> Callable[[Kind], Kind]:
    """Makes methods of a class refuse unknown keywords, as `refuses_typos` does: these, or all public ones."""

    def decorate(kind: Kind) -> Kind:
        for name, method in list(vars(kind).items()):
            if name in names or (not names and inspect.isfunction(method) and not name.startswith("_")):
                setattr(kind, name, _checked(method, f"{what}.{name}", _NO_HINTS))
        return kind

    return decorate


def _checked(function: Any, what: str, hints: Mapping[str, str]) -> Any:
    parameters = [*inspect.signature(function).parameters.values()]
    known = [one.name for one in parameters if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]
    known = known[1:] if known[:1] in (["self"], ["cls"]) else known
    names = frozenset(known)
    if any(one.kind is one.VAR_KEYWORD for one in parameters) or inspect.isasyncgenfunction(function):
        return function  # it checks them itself

    def check(given: Mapping[str, object]) -> None:
        for name in given.keys() - names:
            raise unknown(name, given[name], known, what, hints.get(name, ""))

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def checked_coroutine(*args: Any, **given: Any) -> Any:
            if given:
                check(given)
            return await function(*args, **given)

        return checked_coroutine

    @functools.wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        if given:
            check(given)
        return function(*args, **given)

    return checked


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
