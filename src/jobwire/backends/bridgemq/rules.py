"""BridgeMQ's capabilities, and the rules for its jobs. Needs no driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.keys import check_job_id, check_name, check_server_id
from jobwire.backends.rules import Rules
from jobwire.boundary import ALL_UNIQUE, Capabilities, ConsumerSettings, Feature
from jobwire.checks import whole
from jobwire.errors import InvalidOption
from jobwire.options import NewJob
from jobwire.protocols import PROTOCOLS

_HAS = frozenset(
    {
        Feature.PRIORITIES,
        Feature.ATTEMPTS,
        Feature.BACKOFF_FIXED,
        Feature.BACKOFF_LINEAR,
        Feature.BACKOFF_EXPONENTIAL,
        Feature.TIMEOUTS,
        Feature.ROUTING,
        Feature.PROGRESS,
        Feature.LOGS,
        Feature.RESULTS,
        Feature.PAUSE,
        Feature.SCHEDULES,
        Feature.SCHEDULE_CRON,
        Feature.SCHEDULE_TZ,
        Feature.RATE_LIMIT,
        Feature.WORKERS,
        Feature.QUEUES,
        Feature.DIAGNOSIS,
    }
)
_NEAREST = {
    Feature.KEY_LIMITS: "use a queue per key, each with its own limit",
    Feature.BACKOFF_CUSTOM: "use fixed, linear or exponential",
    Feature.SCHEDULE_EVERY: "use cron, with seconds first if need be: cron='*/5 * * * * *'",
    Feature.JOB_NAMES: "a queue is a job type, and the type is the name",
    Feature.LIFO: "priority=7 and more goes to the front",
    Feature.EXPIRY: "remove(id) takes a job out of the queue",
    Feature.KEEP: "finished jobs stay for 24 hours; clean() removes them sooner",
    **dict.fromkeys(ALL_UNIQUE, "give the job an id of your own: a second one with it is refused"),
    Feature.FLOWS: "add the next job from the handler of the one before",
    Feature.DEPENDENCIES: "add the next job at the end of the first task",
    Feature.TRANSACTIONAL_ADD: "add after the transaction has been committed",
    Feature.EVENTS: "job.wait() and counts() look at the store",
    Feature.CANCEL: "remove(id) takes it out of the queue",
    Feature.SCHEDULE_LIMIT: "use cron with a time zone",
    Feature.SCHEDULE_WINDOW: "use cron with a time zone",
    Feature.SCHEDULE_IMMEDIATELY: "use cron with a time zone",
}
CAPABILITIES = Capabilities(
    protocol=PROTOCOLS["bridgemq"].name,
    features=_HAS,
    priority="high_first",
    priority_classes=2,
    default_priority=codec.DEFAULT_PRIORITY,
    default_attempts=1,
    nearest=_NEAREST,
)

LOWEST, HIGHEST = 1, 10
SCHEDULE_ONLY = ("cronMode", "overlap")
LIMITS = ("maxConcurrent", "maxPerMinute")
_NAMES = ("skipOn", "rerouteOn")
_EXTRA = (*LIMITS, *_NAMES, "metadata", *SCHEDULE_ONLY)
_JITTER = 0.25


def check(queue: str, job: NewJob) -> None:
    """Raises InvalidOption for options that the protocol can't store, and for those that would break a peer."""
    check_name("queue", queue)
    if job.id is not None:
        check_job_id(job.id)
    if job.priority is not None and not LOWEST <= job.priority <= HIGHEST:
        raise InvalidOption(
            "priority", job.priority, f"must lie between {LOWEST} and {HIGHEST} ({codec.FRONT_FROM} and more go first)"
        )
    if job.backoff is not None and job.backoff.jitter not in (0, _JITTER):
        raise InvalidOption(
            "backoff.jitter", job.backoff.jitter, "must be 0 or 0.25: BridgeMQ spreads by a quarter or not at all"
        )
    if job.target is not None and job.target.server is not None:
        check_server_id(job.target.server)
    for option, value in job.extra.items():
        _check_extra(option, value)


def _check_extra(option: str, value: Any) -> None:
    field = f"extra.{option}"
    if option in LIMITS:
        whole(field, value, minimum=0)
    elif option in _NAMES:
        if not _is_names(value):
            raise InvalidOption(field, value, "must be a list of error names")
    elif option == "metadata":
        if not isinstance(value, dict):
            raise InvalidOption(field, value, "must be a dict")
    elif option == "cronMode":
        if value not in ("template", "instance"):
            raise InvalidOption(field, value, "must be template or instance")
    elif option == "overlap":
        if value not in ("skip", "allow"):
            raise InvalidOption(field, value, "must be skip or allow")
    else:
        raise InvalidOption(field, value, f"is not an option of a BridgeMQ job; known are {', '.join(_EXTRA)}")


def _is_names(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in cast(Sequence[Any], value))


def check_no_schedule(job: NewJob) -> None:
    """Raises InvalidOption for options that only the job of a schedule can have."""
    for option in SCHEDULE_ONLY:
        if option in job.extra:
            raise InvalidOption(f"extra.{option}", job.extra[option], "is for schedules")


def check_worker(settings: ConsumerSettings) -> None:
    check_name("queue", settings.queue)
    if settings.keep_completed is not None or settings.keep_failed is not None:
        CAPABILITIES.require(Feature.KEEP)
    if settings.strategy is not None or settings.strategies:
        CAPABILITIES.require(Feature.BACKOFF_CUSTOM)


RULES = Rules(
    CAPABILITIES,
    check,
    lambda job: check_no_schedule(job.new),
    check_worker,
    rank=lambda priority: (0, True) if priority >= codec.FRONT_FROM else (1, False),
)
