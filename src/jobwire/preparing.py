"""From what a caller asks for to what a backend stores: every check, and the encoding, before anything is written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast, overload

from jobwire import codec
from jobwire.backend import Added, Backend, Capabilities, PreparedJob
from jobwire.counted import counted
from jobwire.demands import demand_job
from jobwire.model import Job, State, Waiter
from jobwire.options import NewJob


def prepare(backend: Backend, queue: str, job: NewJob, size_limit: int | None) -> PreparedJob:
    """The job as it will be written. `size_limit` bounds data and options together, in bytes."""
    demand_job(backend.capabilities, queue, job)
    options = backend.check(queue, job)
    data = codec.dumps(job.data)
    if size_limit is not None:
        codec.check_size(len(data) + (len(options) if options is not None else 0), size_limit)
    return PreparedJob(job, job.name if job.name is not None else queue, data, options)


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
    """What a caller who has just added the job gets to see of it: what was asked for, and what the protocol `can`
    promises where nothing was."""
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
        refused=added.refused,
        origin=origin,
    )


class AddedJobs(Sequence[Job]):
    """The snapshots of jobs added in bulk, made when they are looked at: most callers of a large bulk look at few,
    and making them costs as much as everything else that Python does for the job."""

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

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, place: int) -> Job: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Job]: ...

    def __getitem__(self, place: int | slice) -> Job | Sequence[Job]:
        if isinstance(place, slice):
            return [self[index] for index in range(len(self))[place]]
        job, added = self._jobs[place], self._added[place]
        return snapshot(self._can, self._queue, job, added, self._origin, now=self._now)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(cast("Sequence[object]", other))

    __hash__ = None  # type: ignore[assignment] like a list

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'job')} of {self._queue!r}>"
