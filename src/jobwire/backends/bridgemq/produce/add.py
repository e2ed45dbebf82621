"""Adding jobs: what BridgeMQ allows, and the batches in which jobs travel."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.job_type import JobType
from jobwire.backends.bridgemq.native.routing import EVERYONE, Route
from jobwire.backends.bridgemq.rules import LIMITS, check_no_schedule
from jobwire.backends.redisio.scripts import Argument
from jobwire.backends.uuid7 import new_ids
from jobwire.boundary import Added, PreparedJob
from jobwire.options import NewJob, seconds

BATCH_JOBS = 500
BATCH_BYTES = 1_000_000

_NO_OPTIONS = (None,) * 8


def route_of(new: NewJob) -> Route:
    """The route of a new job, by the same rules as that of a stored one."""
    target, extra = new.target, new.extra
    if target is None and not extra:
        return EVERYONE
    limits = [extra.get(name) for name in LIMITS]
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
    made = iter(new_ids(sum(not job.new.id for job in jobs)))
    for job in jobs:
        new = job.new
        check_no_schedule(new)
        if len(names) >= BATCH_JOBS or (size + len(job.data) > BATCH_BYTES and names):
            yield names, args
            names, args, size = [], [], 0
        job_id = new.id or next(made)
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
