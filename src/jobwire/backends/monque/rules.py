"""The capabilities of Monque, and the checks of jobs, queues and workers. Needs no driver."""

from __future__ import annotations

import re
from typing import Any, cast

from jobwire import codec
from jobwire.backends.rules import Rules
from jobwire.boundary import BACKOFFS, Capabilities, ConsumerSettings, Feature, PreparedJob
from jobwire.errors import InvalidOption, NotSupported
from jobwire.options import NewJob
from jobwire.protocols import PROTOCOLS

_HAS = frozenset(
    {
        Feature.UNIQUE,
        Feature.TRANSACTIONAL_ADD,
        Feature.PROGRESS,
        Feature.LOGS,
        Feature.RESULTS,
        Feature.EVENTS,
        Feature.PAUSE,
        Feature.QUEUES,
        Feature.DIAGNOSIS,
        Feature.CANCEL,
        Feature.SCHEDULES,
        Feature.SCHEDULE_CRON,
    }
)
_NEAREST = {
    Feature.KEY_LIMITS: "use a queue per key, and a worker for each with its own concurrency",
    Feature.UNIQUE_TTL: "a key is held while its job is pending or processing",
    Feature.UNIQUE_EXTEND: "a key is held while its job is pending or processing",
    Feature.UNIQUE_REPLACE: "cancel the job that holds the key, then add",
    Feature.SCHEDULE_EVERY: "use cron=…, with 6 fields for seconds",
    Feature.SCHEDULE_TZ: "the zone is a setting of the instance: ?tz= in the URL",
    Feature.SCHEDULE_LIMIT: "unschedule(key) from the handler",
    Feature.SCHEDULE_WINDOW: "schedule and unschedule at those times",
    Feature.SCHEDULE_IMMEDIATELY: "add a job beside the schedule",
    Feature.JOB_NAMES: "a queue is a job name: use a queue per name",
    Feature.PRIORITIES: "use a queue per priority, or run_at: jobs run in the order of their due time",
    Feature.LIFO: "jobs run in the order of their due time: give an earlier run_at",
    Feature.ATTEMPTS: "attempts are a setting of the instance: ?max_retries= or MonqueWorker(max_retries=…)",
    **dict.fromkeys(
        BACKOFFS.values(),
        "backoff is a setting of the instance: native=MonqueWorker(base_retry_interval=…) or Worker(backoff=callable)",
    ),
    Feature.TIMEOUTS: "give the worker timeout=…",
    Feature.EXPIRY: "cancel(id) keeps a job from being run",
    Feature.KEEP: "give the worker keep_completed=Keep(age=…)",
    Feature.FLOWS: "add the next job from the handler of the one before",
    Feature.DEPENDENCIES: "add the next job at the end of the first task",
    Feature.ROUTING: "use a queue per group of workers",
    Feature.RATE_LIMIT: "limit the concurrency of the workers",
    Feature.LIMITS: "limit the concurrency of the workers",
    Feature.WORKERS: "a running job names its instance in Job.worker",
    Feature.EVENTS: "a standalone server pushes no changes: make it a replica set of one",
}
CAPABILITIES = Capabilities(
    protocol=PROTOCOLS["monque"].name,
    features=_HAS,
    ids="objectid",
    null_key=False,
    split_from=40,
    nearest=_NEAREST,
)

MAX_NAME = 255
MAX_UNIQUE_KEY = 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ID = re.compile("[0-9a-f]{24}")
_INT32 = 2**31
MAX_DEPTH = 90
"""The server takes 100 levels, of which the job is one. Some are left for levels that peers add around a payload."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def check_name(queue: str) -> None:
    if _units(queue) > MAX_NAME or re.search(r"\s", queue) or _CONTROL.search(queue):
        rule = f"must be 1 to {MAX_NAME} characters without spaces and control characters in Monque"
        raise InvalidOption("queue", queue, rule)


def check_key(field: str, key: str) -> None:
    given: Any = key
    if not isinstance(given, str):
        raise InvalidOption(field, given, "must be a text")
    if _units(key) > MAX_UNIQUE_KEY or not key.strip() or _CONTROL.search(key):
        raise InvalidOption(field, key, f"must be 1 to {MAX_UNIQUE_KEY} characters, not all spaces, none of control")


def _units(text: str) -> int:
    """Returns the length as JavaScript counts it."""
    return len(text.encode("utf-16-le")) // 2


def check(queue: str, job: NewJob) -> None:
    check_name(queue)
    if job.unique is not None:
        check_key("unique.key", job.unique.key)
    if job.id is not None and not _ID.fullmatch(job.id):
        rule = "must be an ObjectId in 24 hexadecimal digits (0-9, a-f), or use unique=Unique(key)"
        raise InvalidOption("id", job.id, rule)
    for name, value in job.extra.items():
        raise InvalidOption(f"extra.{name}", value, "is not an option of a Monque job; it has none of its own")


def to_bson(value: Any, path: str = "data", depth: int = 0) -> Any:
    """Returns the value as the peer's driver would store it. Raises InvalidOption if BSON can't hold it."""
    kind = cast("type[object]", type(value))
    if kind is int:
        return value if -_INT32 <= value < _INT32 else float(value)
    if kind is str:
        if not value.isascii() and _SURROGATE.search(value):
            raise InvalidOption(path, value, "must be valid Unicode (it has a lone surrogate)")
        return value
    if kind is dict:
        _check_depth(path, depth)
        return {_key(key, path): to_bson(each, f"{path}.{key}", depth + 1) for key, each in value.items()}
    if kind is list:
        _check_depth(path, depth)
        return [to_bson(each, f"{path}[{index}]", depth + 1) for index, each in enumerate(value)]
    return value


def _check_depth(path: str, depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise InvalidOption(path[:80], "…", f"must not be nested deeper than {MAX_DEPTH} levels")


def _key(key: str, path: str) -> str:
    if "\x00" in key:
        raise InvalidOption(path, key, "a key must not hold the null character; BSON ends a key with it")
    if not key.isascii() and _SURROGATE.search(key):
        raise InvalidOption(path, key, "a key must be valid Unicode (it has a lone surrogate)")
    return key


def _check_encoded(job: PreparedJob) -> None:
    to_bson(codec.loads(job.data))


def check_worker(settings: ConsumerSettings) -> None:
    check_name(settings.queue)
    if settings.rate is not None:
        CAPABILITIES.require(Feature.RATE_LIMIT)
    if settings.strategies:
        raise NotSupported(CAPABILITIES.protocol, "named backoffs", "give the worker one function: backoff=callable")


RULES = Rules(CAPABILITIES, check, _check_encoded, check_worker, rank=lambda priority: (0, False))
