"""Adds jobs in batches, each in one round trip."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.job_type import JobType
from jobwire.backends.bridgemq.native.routing import EVERYONE, Route
from jobwire.backends.bridgemq.produce.encode_job import encode_job, encode_plain
from jobwire.backends.bridgemq.rules import LIMITS, check_no_schedule
from jobwire.backends.redisio.scripts import Argument
from jobwire.backends.uuid7 import new_ids
from jobwire.boundary import Added, PreparedJob
from jobwire.checks import seconds
from jobwire.model import AddStatus
from jobwire.options import NewJob

BATCH_JOBS = 500
BATCH_BYTES = 1_000_000

_NO_OPTIONS = (None,) * 8


def route_of(new: NewJob) -> Route:
    """Returns the route of a new job, by the same rules as that of a stored one."""
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
    """Adds jobs in order. A job whose id exists already is refused, the others are added."""
    for job in jobs:
        check_no_schedule(job.new)
    answers: list[Added] = []
    for names, args in _batches(kind.name, jobs):
        taken: list[int] = await kind.run("add", kind.name, len(names), *args)
        added = [Added(name) for name in names]
        for position in taken:
            added[position - 1] = Added(names[position - 1], AddStatus.DUPLICATE)
        answers += added
    return answers


def _batches(queue: str, jobs: Sequence[PreparedJob]) -> Iterator[tuple[list[str], list[Argument]]]:
    """Yields batches that block the server for some milliseconds at most: the ids, and the script's arguments."""
    names: list[str] = []
    args: list[Argument] = []
    size = 0
    now_ms = int(time.time() * 1000)
    made = iter(new_ids(sum(not job.new.id for job in jobs)))
    for job in jobs:
        new = job.new
        if len(names) >= BATCH_JOBS or (size + len(job.data) > BATCH_BYTES and names):
            yield names, args
            names, args, size = [], [], 0
        job_id = new.id or next(made)
        names.append(job_id)
        size += len(job.data)
        if _is_plain(new):
            args += (job_id, "", encode_plain(job, queue, job_id, now_ms), "", "", "", "-", "")
            continue
        args += (
            job_id,
            "i" if new.id else "",
            encode_job(job, queue, job_id, now_ms),
            _due(new),
            "f" if (new.priority or 0) >= codec.FRONT_FROM else "",
            *route_arguments(route_of(new)),
        )
    if names:
        yield names, args


def _due(new: NewJob) -> Argument:
    """Returns when the job is due, by the server's clock: a time in ms, ms from now with a plus, or '' for at once."""
    if new.run_at is not None:
        return codec.to_ms(new.run_at)
    delay = round(seconds("delay", new.delay) * 1000) if new.delay is not None else 0
    return f"+{delay}" if delay > 0 else ""


def _is_plain(new: NewJob) -> bool:
    options = (new.id, new.priority, new.delay, new.run_at, new.attempts, new.backoff, new.timeout, new.target)
    return options == _NO_OPTIONS and not new.extra


def route_arguments(route: Route) -> tuple[str, str, str]:
    """Returns server, signature and definition of a route, as arguments of the scripts."""
    return (route.server, route.signature, route.definition) if route is not EVERYONE else ("", "-", "")
