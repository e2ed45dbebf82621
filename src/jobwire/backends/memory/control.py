"""Changes to jobs and limits that an operator makes."""

from __future__ import annotations

from jobwire.backend import Acted
from jobwire.backends.memory import admin
from jobwire.backends.memory.queue_state import QueueState
from jobwire.backends.memory.rules import MAX_PRIORITY
from jobwire.errors import InvalidOption
from jobwire.model import Limits, State


def retry_anew(queue: QueueState, job_id: str, now: int) -> Acted:
    acted = admin.retry(queue, job_id, now)
    if acted is Acted.DONE:
        queue.jobs[job_id].attempts_made = queue.jobs[job_id].starts = 0
    return acted


def change_priority(queue: QueueState, job_id: str, now: int, *, priority: int, front: bool) -> Acted:
    record = queue.jobs.get(job_id)
    if not 0 <= priority <= MAX_PRIORITY:
        raise InvalidOption("priority", priority, f"must be from 0 (first) to {MAX_PRIORITY} (last)")
    if record is None:
        return Acted.NOT_FOUND
    record.priority = priority
    if queue.ready.discard(job_id):
        queue.stand_in_line(record, front=front)
        queue.work.wake()
    return Acted.DONE


def change_delay(queue: QueueState, job_id: str, now: int, *, delay: float) -> Acted:
    record = queue.jobs.get(job_id)
    if record is None:
        return Acted.NOT_FOUND
    if record.state is not State.DELAYED:
        return Acted.WRONG_STATE
    queue.lift(record)
    record.due = now + round(delay * 1000)
    queue.place(record, now, prev=State.DELAYED)
    return Acted.DONE


def retry_all(queue: QueueState, state: State, before: float, *, limit: int, now: int) -> int:
    old = [job_id for job_id in queue.finished[state] if (queue.jobs[job_id].finished or 0) <= before * 1000]
    for job_id in old[:limit]:
        admin.retry(queue, job_id, now)
    return len(old[:limit])


def promote_all(queue: QueueState, limit: int, now: int) -> int:
    ids = [job_id for _, job_id in queue.delayed.ordered()][:limit]
    for job_id in ids:
        admin.promote(queue, job_id, now)
    return len(ids)


def limits(queue: QueueState, now: int) -> Limits:
    until = queue.throttled_until
    if queue.rate is not None and queue.window.started >= queue.rate[0]:
        until = max(until, queue.window.until)
    return Limits(queue.concurrency, queue.rate, max(0, until - now) / 1000)


def throttle(queue: QueueState, delay: float, now: int) -> None:
    queue.throttled_until = now + round(delay * 1000) if delay > 0 else 0
    if delay <= 0:
        queue.window.started = queue.window.until = 0
        queue.work.wake()
