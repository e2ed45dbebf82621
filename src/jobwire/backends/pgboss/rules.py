"""The capabilities of pg-boss, and the checks of jobs, queues and workers. Needs no driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from jobwire import codec
from jobwire.backends.pgboss.codec import CAN_NOT_HOLD, storable
from jobwire.backends.pgboss.produce.ids import is_id
from jobwire.backends.rules import Rules
from jobwire.boundary import Capabilities, ConsumerSettings, Feature
from jobwire.checks import seconds, whole
from jobwire.errors import InvalidOption, NotSupported
from jobwire.options import NewJob
from jobwire.protocols import PROTOCOLS

_HAS = frozenset(
    {
        Feature.PRIORITIES,
        Feature.ATTEMPTS,
        Feature.BACKOFF_FIXED,
        Feature.BACKOFF_EXPONENTIAL,
        Feature.TIMEOUTS,
        Feature.EXPIRY,
        Feature.UNIQUE,
        Feature.TRANSACTIONAL_ADD,
        Feature.TRANSACTIONS,
        Feature.PROGRESS,
        Feature.LOGS,
        Feature.RESULTS,
        Feature.PAUSE,
        Feature.QUEUES,
        Feature.DIAGNOSIS,
        Feature.CANCEL,
        Feature.SCHEDULES,
        Feature.SCHEDULE_CRON,
        Feature.SCHEDULE_TZ,
        Feature.RATE_LIMIT,
        Feature.DEPENDENCIES,
        Feature.KEY_LIMITS,
    }
)
_NEAREST = {
    Feature.UNIQUE_TTL: "extra={'singletonSeconds': 60} admits one job of a key in each minute",
    Feature.SCHEDULE_EVERY: "give a cron expression: its finest step is a minute",
    Feature.JOB_NAMES: "a queue holds one kind of job: use a queue per kind",
    Feature.LIFO: "give the job a higher priority",
    Feature.KEEP: "finished jobs are kept for a time: extra={'deleteAfterSeconds': 3600}",
    Feature.FLOWS: "jobwire.backends.pgboss.Boss.flow adds jobs that wait for others",
    Feature.EVENTS: "ask for the job, or wait for it",
    Feature.WORKERS: "Node's instances are in the table `instance`",
}
CAPABILITIES = Capabilities(
    protocol=PROTOCOLS["pgboss"].name,
    features=_HAS,
    ids="uuid",
    priority="high_first",
    null_character=False,
    null_key=False,
    split_from=40,
    nearest=_NEAREST,
)

POLICIES = ("standard", "short", "singleton", "stately", "exclusive", "key_strict_fifo")
_NAME = re.compile(r"[\w\-./]+", re.ASCII)


def check_name(field: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidOption(field, name, "must be letters, digits, _ - . / only, as pg-boss demands")
    return name


def _at_least(minimum: int, most: int = 2**31 - 1) -> Any:
    def rule(field: str, value: Any) -> None:
        if whole(field, value, minimum=minimum) > most:
            raise InvalidOption(field, value, f"must be at most {most}")

    return rule


def _flag(field: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidOption(field, value, "must be true or false")


def _policy(field: str, value: Any) -> None:
    if value not in POLICIES:
        raise InvalidOption(field, value, f"must be one of {', '.join(POLICIES)}")


def _queue(field: str, value: Any) -> None:
    check_name(field, str(value))


SETTING_RULES: dict[str, Any] = {
    "policy": _policy,
    "partition": _flag,
    "retryLimit": _at_least(0),
    "retryDelay": _at_least(0),
    "retryBackoff": _flag,
    "retryDelayMax": _at_least(0),
    "expireInSeconds": _at_least(1, 86_400),
    "retentionSeconds": _at_least(1),
    "deleteAfterSeconds": _at_least(0),
    "warningQueueSize": _at_least(0),
    "deadLetter": _queue,
    "heartbeatSeconds": _at_least(10),
    "notify": _flag,
}
_OF_QUEUES_ONLY = ("policy", "partition", "warningQueueSize", "notify")
JOB_RULES: dict[str, Any] = {
    **{name: rule for name, rule in SETTING_RULES.items() if name not in _OF_QUEUES_ONLY},
    "singletonSeconds": _at_least(1),
    "singletonOffset": _at_least(0),
    "singletonNextSlot": _flag,
}
OPTIONS = ("singletonKey", "group", *JOB_RULES)
"""Options of a job by pg-boss's names, beside those that NewJob has a name for."""


def check(job: NewJob, data: bytes | None = None) -> None:
    """Raises InvalidOption for a job that pg-boss does not take. `data` is its data in encoded form, if that has been
    made."""
    if job.priority is not None and job.priority > 2**31 - 1:
        raise InvalidOption("priority", job.priority, "must be at most 2^31 - 1")
    if job.attempts is not None and job.attempts > 2**31:
        raise InvalidOption("attempts", job.attempts, "must be at most 2^31")
    if job.backoff is not None and job.backoff.jitter:
        raise InvalidOption("backoff.jitter", job.backoff.jitter, "is pg-boss's own: up to twice the wait")
    if job.backoff is not None and job.backoff.kind == "fixed" and job.backoff.cap is not None:
        raise InvalidOption("backoff.cap", job.backoff.cap, "is for exponential backoff only")
    if job.timeout is not None and seconds("timeout", job.timeout) > 86_400:
        raise InvalidOption("timeout", job.timeout, "must be at most a day (86400 s), as pg-boss demands")
    if job.id is not None and not is_id(job.id):
        raise InvalidOption("id", job.id, "must be a UUID, as pg-boss demands, or use unique=Unique(key)")
    if "id" in job.extra:
        raise InvalidOption("extra.id", job.extra["id"], "is an option of its own: give it as id=…")
    if job.unique is not None and "singletonKey" in job.extra:
        raise InvalidOption("extra.singletonKey", job.extra["singletonKey"], "can't be given together with unique")
    if data is None:
        encoded("data", job.data)
    else:
        _check_storable("data", data)
    if job.extra:
        check_options(job.extra, "extra.")


def encoded(field: str, data: Any) -> bytes:
    """Returns the data as JSON. Raises InvalidOption if jsonb can't hold it."""
    made = codec.dumps(data)
    _check_storable(field, made)
    return made


def _check_storable(field: str, made: bytes) -> None:
    if not storable(made):
        raise InvalidOption(field, "…", CAN_NOT_HOLD)


def check_options(extra: Mapping[str, Any], where: str = "") -> None:
    """Raises InvalidOption for an option, given by its native name, that pg-boss does not have or allow."""
    for name, value in extra.items():
        field = f"{where}{name}"
        if value is None or (name in ("startAfter", "priority") and not where):
            continue
        if name == "id":
            if not isinstance(value, str) or not is_id(value):
                raise InvalidOption(field, value, "must be a UUID, as pg-boss demands")
        elif name == "singletonKey":
            if not isinstance(value, str) or "\x00" in value:
                raise InvalidOption(field, value, "must be a text")
        elif name == "group":
            _group(field, value)
        elif name in JOB_RULES:
            JOB_RULES[name](field, value)
        else:
            raise InvalidOption(field, value, f"is not an option of pg-boss; known are {', '.join(OPTIONS)}")
    if extra.get("retryDelayMax") is not None and not extra.get("retryBackoff"):
        raise InvalidOption(f"{where}retryDelayMax", extra["retryDelayMax"], "needs retryBackoff beside it")


def _group(field: str, value: object) -> None:
    parts = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    texts = all(isinstance(part, str) and part and "\x00" not in part for part in parts.values())
    if "id" not in parts or not set(parts) <= {"id", "tier"} or not texts:
        raise InvalidOption(field, parts, 'must be {"id": text} or {"id": text, "tier": text}')


def _check_in_queue(queue: str, job: NewJob) -> None:
    check_name("queue", queue)
    check(job)


def check_worker(settings: ConsumerSettings) -> None:
    if settings.strategy is not None or settings.strategies:
        raise NotSupported(CAPABILITIES.protocol, "backoff of a worker", "give the job backoff=Backoff.exponential(…)")
    if settings.keep_completed is not None or settings.keep_failed is not None:
        CAPABILITIES.require(Feature.KEEP)


RULES = Rules(CAPABILITIES, _check_in_queue, lambda job: None, check_worker, rank=lambda priority: (-priority, False))
