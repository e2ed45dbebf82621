"""Adding jobs: what BridgeMQ allows, and the batches in which jobs travel."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, cast

from jobwire.backend import Added, PreparedJob
from jobwire.backends.bridgemq import codec, ids
from jobwire.backends.bridgemq.jobtype import JobType
from jobwire.backends.bridgemq.keys import check_job_id, check_name, check_server_id
from jobwire.backends.bridgemq.routing import EVERYONE, Route
from jobwire.backends.redisio.scripts import Argument
from jobwire.errors import InvalidOption
from jobwire.options import NewJob, seconds, whole

BATCH_JOBS = 500
BATCH_BYTES = 1_000_000
LOWEST, HIGHEST = 1, 10
SCHEDULE_ONLY = ("cronMode", "overlap")

_LIMITS = ("maxConcurrent", "maxPerMinute")
_NAMES = ("skipOn", "rerouteOn")
_EXTRA = (*_LIMITS, *_NAMES, "metadata", *SCHEDULE_ONLY)
_JITTER = 0.25
_NO_OPTIONS = (None,) * 8


def check(queue: str, job: NewJob) -> None:
    """Refuse what the protocol has no place for, and what would make a peer stumble."""
    check_name("queue", queue)
    if job.id is not None:
        check_job_id(job.id)
    if job.priority is not None and not LOWEST <= job.priority <= HIGHEST:
        raise InvalidOption(
            "priority", job.priority, f"must lie between {LOWEST} and {HIGHEST} ({codec.FRONT_FROM} and more go first)"
        )
    if job.backoff is not None and job.backoff.jitter not in (0, _JITTER):
        raise InvalidOption(
            "backoff.jitter", job.backoff.jitter, "must be 0 or 0.25: BridgeMQ spreads by a quarter or not"
        )
    if job.target is not None and job.target.server is not None:
        check_server_id(job.target.server)
    for option, value in job.extra.items():
        _check_extra(option, value)


def _check_extra(option: str, value: Any) -> None:
    field = f"extra.{option}"
    if option in _LIMITS:
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


def route_of(new: NewJob) -> Route:
    """The route of a new job, by the same rules as that of a stored one."""
    target, extra = new.target, new.extra
    if target is None and not extra:
        return EVERYONE
    limits = [extra.get(name) for name in _LIMITS]
    if target is None:
        return Route(max_concurrent=limits[0], max_per_minute=limits[1])
    return Route(
        target.server or "", target.stack, target.capabilities, target.region, target.mode, limits[0], limits[1]
    )


async def add(kind: JobType, jobs: Sequence[PreparedJob]) -> Sequence[Added]:
    """Add jobs in order; one whose id is taken is refused alone."""
    answers: list[Added] = []
    for names, args in _batches(kind.name, jobs):
        taken: list[int] = await kind.run("add", kind.name, len(names), *args)
        added = [Added(name) for name in names]
        for place in taken:
            added[place - 1] = Added(names[place - 1], "a job with this id exists")
        answers += added
    return answers


def _batches(queue: str, jobs: Sequence[PreparedJob]) -> Iterator[tuple[list[str], list[Argument]]]:
    """Jobs in portions that hold the server up for some milliseconds at most."""
    names: list[str] = []
    args: list[Argument] = []
    size = 0
    now_ms = int(time.time() * 1000)
    for job in jobs:
        new = job.new
        for option in SCHEDULE_ONLY:
            if option in new.extra:
                raise InvalidOption(f"extra.{option}", new.extra[option], "is for schedules")
        if len(names) >= BATCH_JOBS or (size + len(job.data) > BATCH_BYTES and names):
            yield names, args
            names, args, size = [], [], 0
        job_id = new.id or ids.new_id()
        names.append(job_id)
        size += len(job.data)
        if _is_plain(new):
            args += (job_id, "", codec.encode_plain(job, queue, job_id, now_ms), "", "", "", "-", "")
            continue
        args += (
            job_id,
            "i" if new.id else "",
            codec.encode_job(job, queue, job_id, now_ms),
            _due(new),
            "f" if (new.priority or 0) >= codec.FRONT_FROM else "",
            *route_words(route_of(new)),
        )
    if names:
        yield names, args


def _due(new: NewJob) -> Argument:
    """When the job may run, by the server's clock: a moment in ms, ms from now with a plus, or '' for at once."""
    if new.run_at is not None:
        return codec.to_ms(new.run_at)
    delay = round(seconds("delay", new.delay) * 1000) if new.delay is not None else 0
    return f"+{delay}" if delay > 0 else ""


def _is_plain(new: NewJob) -> bool:
    options = (new.id, new.priority, new.delay, new.run_at, new.attempts, new.backoff, new.timeout, new.target)
    return options == _NO_OPTIONS and not new.extra


def route_words(route: Route) -> tuple[str, str, str]:
    """Server, signature and words, as scripts take a route."""
    return (route.server, route.signature, route.words) if route is not EVERYONE else ("", "-", "")
