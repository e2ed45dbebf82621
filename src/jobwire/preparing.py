"""Checks and encodes jobs before anything is written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, cast, overload

from jobwire import codec
from jobwire.boundary import Added, Backend, Capabilities, PreparedJob
from jobwire.counted import counted
from jobwire.errors import InvalidOption
from jobwire.model import Job, State, Waiter
from jobwire.options import NO_DATA, JobOptions, NewJob
from jobwire.required_features import require_for_job


def prepare(
    backend: Backend, queue: str, job: NewJob, size_limit: int | None, *, data: bytes | None = None
) -> PreparedJob:
    """Returns the job as it will be written. `size_limit` is the limit for data and options together, in bytes. `data`
    is the job's data in encoded form, if that has been made: then the data of `job` is not looked at."""
    if job.data is NO_DATA:
        job = replace(job, data=codec.loads(backend.capabilities.no_data))
    require_for_job(backend.capabilities, queue, job)
    if data is None:
        data = codec.dumps(job.data)
    options = backend.check(queue, job, data)
    if size_limit is not None:
        codec.check_size(len(data) + (len(options) if options is not None else 0), size_limit)
    return PreparedJob(job, job.name if job.name is not None else queue, data, options)


def defaults_of(options: JobOptions) -> NewJob:
    """Returns a queue's default options, checked. Refuses options that make sense for a single job only."""
    for name in ("id", "parent"):
        if name in options:
            raise InvalidOption(f"defaults.{name}", options.get(name), "belongs to one job")
    return NewJob(None, **options)


def with_defaults(job: NewJob, defaults: NewJob) -> NewJob:
    """Returns the job with defaults for the options that it does not have. A job with a `run_at` gets no default delay,
    and one with a delay no default `run_at`."""
    names = [field.name for field in fields(NewJob) if field.name not in ("data", "name", "lifo", "extra")]
    missing: dict[str, Any] = {name: getattr(defaults, name) for name in names if getattr(job, name) is None}
    missing["lifo"] = job.lifo or defaults.lifo
    if job.delay is not None or job.run_at is not None:
        missing |= {"delay": job.delay, "run_at": job.run_at}
    return replace(job, **missing, extra={**defaults.extra, **job.extra})


def snapshot(
    can: Capabilities,
    queue: str,
    job: PreparedJob,
    added: Added,
    origin: Waiter | None,
    *,
    now: float | None = None,
    has_children: bool = False,
) -> Job:
    """Returns a job that was just added, made from its options and, for those not given, from what the protocol `can`
    promise."""
    new, now = job.new, time.time() if now is None else now
    delay = new.delay_at(now)
    state = State.DELAYED if delay > 0 else State.WAITING
    return Job(
        id=added.id,
        queue=queue,
        name=job.name,
        data=new.data,
        state=State.WAITING_CHILDREN if has_children else state,
        priority=can.default_priority if new.priority is None else new.priority,
        attempts=can.default_attempts if new.attempts is None else new.attempts,
        created_at=datetime.fromtimestamp(now, UTC),
        run_at=datetime.fromtimestamp(now + delay, UTC),
        add_status=added.status,
        origin=origin,
    )


class AddedJobs(Sequence[Job]):
    """The jobs of a bulk add. Each snapshot is made when it is read: most callers read few of them, and making one
    costs as much as everything else that Python does for the job."""

    def __init__(
        self,
        can: Capabilities,
        queue: str,
        jobs: Sequence[PreparedJob],
        added: Sequence[Added],
        origin: Waiter | None,
    ) -> None:
        self._can = can
        self._queue = queue
        self._jobs = jobs
        self._added = added
        self._origin = origin
        self._now = time.time()

    def through(self, origin: Waiter) -> AddedJobs:
        """Returns the same jobs, to be waited for through another object."""
        return AddedJobs(self._can, self._queue, self._jobs, self._added, origin)

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, index: int) -> Job: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Job]: ...

    def __getitem__(self, index: int | slice) -> Job | Sequence[Job]:
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        job, added = self._jobs[index], self._added[index]
        return snapshot(self._can, self._queue, job, added, self._origin, now=self._now)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(cast("Sequence[object]", other))

    __hash__ = None  # type: ignore[assignment] like a list

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'job')} of {self._queue!r}>"
