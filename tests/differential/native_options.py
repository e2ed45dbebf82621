"""BullMQ's option names and milliseconds, as a scenario gives them, in jobwire's words."""

from __future__ import annotations

from typing import Any

from jobwire import Backoff, NewJob, Rate
from jobwire.native import BullMQWorker
from jobwire.options import Keep, Parent, Unique, keep_of

PARENT_FLAGS = {
    "failParentOnFailure": "fail",
    "continueParentOnFailure": "continue",
    "ignoreDependencyOnFailure": "ignore",
    "removeDependencyOnFailure": "remove",
}
_SAME = ("priority", "attempts", "lifo")
_EXTRA = ("stackTraceLimit", "keepLogs", "timestamp")


def new_job(name: str, opts: dict[str, Any] | None = None, data: Any = None) -> NewJob:
    left = dict(opts or {})
    options: dict[str, Any] = {option: left.pop(option) for option in _SAME if option in left}
    if "jobId" in left:
        options["id"] = left.pop("jobId")
    if "delay" in left:
        options["delay"] = left.pop("delay") / 1000
    if "backoff" in left:
        options["backoff"] = _backoff(left.pop("backoff"))
    if "removeOnComplete" in left:
        options["keep_completed"] = _kept(left.pop("removeOnComplete"))
    if "removeOnFail" in left:
        options["keep_failed"] = _kept(left.pop("removeOnFail"))
    if "deduplication" in left:
        options["unique"] = _unique(left.pop("deduplication"))
    flags = [words for flag, words in PARENT_FLAGS.items() if left.pop(flag, False)]
    if "parent" in left:
        options["parent"] = Parent(**left.pop("parent"), **({"on_failure": flags[0]} if flags else {}))
    extra = {option: left.pop(option) for option in _EXTRA if option in left}
    assert not left, f"no words for {left}"
    return NewJob(data, name, extra=extra, **options)


def worker_settings(options: dict[str, Any]) -> dict[str, Any]:
    left = dict(options)
    settings: dict[str, Any] = {}
    if "name" in left:
        settings["name"] = left.pop("name")
    if "limiter" in left:
        limiter = left.pop("limiter")
        settings["rate"] = Rate(limiter["max"], per=limiter["duration"] / 1000)
    if "lockDuration" in left:
        settings["lease"] = left.pop("lockDuration") / 1000
    if "maxStalledCount" in left:
        settings["max_stalled"] = left.pop("maxStalledCount")
    for option, ours in (("removeOnComplete", "keep_completed"), ("removeOnFail", "keep_failed")):
        if option in left:
            settings[ours] = keep_of(_kept(left.pop(option)))
    if "strategy" in left:
        step = left.pop("strategy")
        settings["strategy"] = lambda failures, _job, _error: None if step < 0 else step * failures / 1000
    native: dict[str, Any] = {}
    if "metrics" in left:
        native["metrics"] = left.pop("metrics")["maxDataPoints"]
    if "maxStartedAttempts" in left:
        native["max_started_attempts"] = left.pop("maxStartedAttempts")
    assert not left, f"no words for {left}"
    return {**settings, "native": BullMQWorker(**native)}


def _backoff(rule: Any) -> Backoff:
    if isinstance(rule, (int, float)):
        return Backoff.fixed(rule / 1000)
    jitter = {"jitter": rule["jitter"]} if "jitter" in rule else {}
    if rule["type"] in ("fixed", "exponential"):
        return getattr(Backoff, rule["type"])(rule["delay"] / 1000, **jitter)
    return Backoff.custom(rule["type"], rule.get("delay", 0) / 1000)


def _kept(rule: Any) -> Any:
    if isinstance(rule, bool):
        return Keep.NONE if rule else Keep.ALL
    return Keep(**rule) if isinstance(rule, dict) else rule


def _unique(rule: dict[str, Any]) -> Unique:
    more = {option: value for option, value in rule.items() if option not in ("id", "ttl")}
    return Unique(rule["id"], ttl=rule["ttl"] / 1000 if "ttl" in rule else None, **more)
