"""A job as the store holds it: encoded values, whole milliseconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from jobwire import codec
from jobwire.backoff import Backoff
from jobwire.boundary import PreparedJob
from jobwire.checks import seconds
from jobwire.model import Job, JobKey, State
from jobwire.options import Keep, Parent, keep_of


@dataclass(frozen=True, slots=True)
class Child:
    """The state of one child: its result (JSON) if it has completed, its error if that is ignored."""

    kind: Literal["pending", "done", "ignored", "failed"]
    result: bytes | None = None
    error: str = ""


@dataclass(slots=True)
class Record:
    """Everything that is stored of one job. JSON stays encoded, so that readers never share a mutable value."""

    id: str
    name: str
    data: bytes
    created: int
    due: int
    priority: int = 0
    attempts: int = 1
    lifo: bool = False
    backoff: Backoff | None = None
    timeout: float | None = None
    keep_completed: Keep | None = None
    keep_failed: Keep | None = None
    unique_key: str | None = None
    schedule_key: str | None = None
    state: State = State.WAITING
    attempts_made: int = 0
    starts: int = 0
    stalls: int = 0
    started: int | None = None
    finished: int | None = None
    progress: bytes | None = None
    result: bytes | None = None
    error: str | None = None
    stack: list[str] = field(default_factory=list[str])
    logs: list[str] = field(default_factory=list[str])
    worker: str | None = None
    token: str | None = None
    lease_until: int = 0
    doomed: str | None = None
    parent: Parent | None = None
    children: dict[JobKey, Child] = field(default_factory=dict[JobKey, Child])
    delay: int = 0
    """The delay that the job asked for, kept while it waits for its children."""

    def held(self, now: int) -> bool:
        """Returns True while a worker's lease on the job runs."""
        return self.state is State.ACTIVE and now < self.lease_until

    def snapshot(self, queue: str) -> Job:
        return Job(
            id=self.id,
            queue=queue,
            name=self.name,
            data=codec.loads(self.data),
            state=self.state,
            native_state=self.state.value,
            priority=self.priority,
            attempts=self.attempts,
            attempts_made=self.attempts_made,
            progress=_decoded(self.progress),
            result=_decoded(self.result),
            error=self.error,
            stacktrace=tuple(self.stack),
            created_at=at_ms(self.created),
            run_at=at_ms(self.due),
            started_at=at_ms(self.started) if self.started is not None else None,
            finished_at=at_ms(self.finished) if self.finished is not None else None,
            worker=self.worker,
            parent=JobKey(self.parent.queue, self.parent.id) if self.parent is not None else None,
            raw={"starts": self.starts, "stalls": self.stalls, "schedule": self.schedule_key},
        )


def new_record(job_id: str, prepared: PreparedJob, now: int) -> Record:
    new = prepared.new
    delay = round(new.delay_at(now / 1000) * 1000)
    return Record(
        id=job_id,
        name=prepared.name,
        data=prepared.data,
        created=now,
        due=now + delay,
        priority=new.priority or 0,
        attempts=new.attempts or 1,
        lifo=new.lifo,
        backoff=new.backoff,
        timeout=seconds("timeout", new.timeout) if new.timeout is not None else None,
        keep_completed=keep_of(new.keep_completed) if new.keep_completed is not None else None,
        keep_failed=keep_of(new.keep_failed) if new.keep_failed is not None else None,
        delay=delay,
    )


def at_ms(moment: int) -> datetime:
    return datetime.fromtimestamp(moment / 1000, UTC)


def _decoded(value: bytes | None) -> object:
    return codec.loads(value) if value is not None else None
