"""The life of a job as spans of time: not due, waiting, running.

Stores keep the times of the last run only. What came before it is one span, unless the queue's stream of events still
has the earlier runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jobwire.counted import counted
from jobwire.look.words import spoken
from jobwire.model import Event, EventKind, Job, State


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a job's life. `kind` is delayed, waiting, earlier, running, completed or failed."""

    kind: str
    begin: datetime
    end: datetime
    label: str

    @property
    def words(self) -> str:
        length = max(0.0, (self.end - self.begin).total_seconds())
        return f"{self.label} {spoken(length) if length >= 1 else f'{length * 1000:.0f} ms'}"


def spans_of(job: Job, events: Iterable[Event] = (), now: datetime | None = None) -> Sequence[Span]:
    """Returns the spans from the add to the end, or to now. Returns none if the store has no time of the add."""
    at = now or datetime.now(UTC)
    if job.created_at is None:
        return []
    return _from_events(job, events, at) or _from_times(job, at)


def _from_times(job: Job, now: datetime) -> Sequence[Span]:
    spans: list[Span] = []
    begin = job.created_at or now
    end = (job.finished_at or now) if job.state.finished else now
    earlier = job.attempts_made - (1 if job.started_at is not None or job.state.finished else 0)
    started = job.started_at if job.started_at is not None and job.started_at >= begin else None
    due = job.run_at if job.run_at is not None and job.run_at > begin else None
    before = started or end
    if earlier > 0 and before > begin:
        spans.append(Span("earlier", begin, before, f"{counted(earlier, 'earlier attempt')} and waiting"))
    else:
        if due is not None and job.state is not State.ACTIVE:
            spans.append(Span("delayed", begin, min(due, before), "not due for"))
            begin = min(due, before)
        if before > begin:
            ran = started is None and job.state in (State.COMPLETED, State.FAILED)
            spans.append(Span(job.state if ran else "waiting", begin, before, "waited and ran" if ran else "waited"))
    if started is not None and (job.state.finished or job.state is State.ACTIVE):
        kind = {State.ACTIVE: "running", State.COMPLETED: "completed"}.get(job.state, "failed")
        label = "running for" if job.state is State.ACTIVE else "last attempt ran"
        spans.append(Span(kind, started, max(end, started), label))
    return spans


def _from_events(job: Job, events: Iterable[Event], now: datetime) -> Sequence[Span]:
    """Returns the spans by the stream, if it has every attempt of the job."""
    mine = sorted((one for one in events if one.job_id == job.id and one.at is not None), key=lambda one: one.at or now)
    starts = sum(one.kind is EventKind.ACTIVE for one in mine)
    if starts < max(2, job.attempts_made) or job.created_at is None:
        return []
    spans: list[Span] = []
    begin, kind, number = job.created_at, "waiting", 0
    for one in mine:
        at = max(one.at or now, begin)
        match one.kind, kind:
            case EventKind.ACTIVE, _:
                if at > begin:
                    spans.append(Span(kind, begin, at, "waited"))
                number += 1
                begin, kind = at, "running"
            case ((EventKind.COMPLETED | EventKind.FAILED | EventKind.DELAYED | EventKind.WAITING), "running"):
                ended = "completed" if one.kind is EventKind.COMPLETED else "failed"
                spans.append(Span(ended, begin, at, f"attempt {number} {ended} after"))
                begin, kind = at, "delayed" if one.kind is EventKind.DELAYED else "waiting"
            case _:
                pass
    if not job.state.finished:
        spans.append(Span(kind, begin, now, "running for" if kind == "running" else "waiting for"))
    return spans
