"""An operator's actions on single jobs and on a whole queue."""

from __future__ import annotations

from jobwire.backends.memory.store import families
from jobwire.backends.memory.store.queue_state import QueueState
from jobwire.backends.memory.store.record import Record
from jobwire.boundary import Acted
from jobwire.counted import counted
from jobwire.errors import WrongState
from jobwire.model import State


def retry(queue: QueueState, job_id: str, now: int) -> Acted:
    """Makes a finished job ready again. Earlier attempts stay charged: a job that failed on its last gets one more."""
    record = queue.jobs.get(job_id)
    if record is None:
        return Acted.NOT_FOUND
    if not record.state.finished:
        return Acted.WRONG_STATE
    families.wait_for_again(queue, record)
    prev = queue.take_out(record)
    record.started = record.finished = record.result = record.error = None
    record.due = now
    queue.put(record, now, prev=prev, front=record.lifo)
    return Acted.DONE


def promote(queue: QueueState, job_id: str, now: int) -> Acted:
    record = queue.jobs.get(job_id)
    if record is None:
        return Acted.NOT_FOUND
    if record.state is not State.DELAYED:
        return Acted.WRONG_STATE
    queue.take_out(record)
    record.due = now
    queue.put(record, now, prev=State.DELAYED)
    return Acted.DONE


def cancel(queue: QueueState, job_id: str, now: int) -> Acted:
    record = queue.jobs.get(job_id)
    if record is None:
        return Acted.NOT_FOUND
    if record.state is State.ACTIVE:
        return Acted.LOCKED
    if record.state.finished or queue.is_pending_repeat(record):
        return Acted.WRONG_STATE
    prev = record.state
    queue.finish(record, State.CANCELLED, now, None)
    queue.log_event("cancelled", now, record, prev=prev.value)
    families.update_parent(queue, record, now)
    return Acted.DONE


def remove(queue: QueueState, job_id: str, now: int) -> Acted:
    """Removes a job after all its descendants, so that no job is left waiting for a removed one."""
    record = queue.jobs.get(job_id)
    below = list(families.descendants(queue, record)) if record is not None else []
    if any(one.held(now) for _, one in below):
        return Acted.LOCKED
    acted = remove_alone(queue, job_id, now)
    if acted is Acted.DONE:
        for home, one in reversed(below):
            remove_alone(home, one.id, now)
    return acted


def remove_alone(queue: QueueState, job_id: str, now: int) -> Acted:
    record = queue.jobs.get(job_id)
    if record is None:
        return Acted.NOT_FOUND
    if record.held(now):
        return Acted.LOCKED
    if queue.is_pending_repeat(record):
        return Acted.WRONG_STATE
    families.leave(queue, record, now)
    prev = queue.forget(record)
    queue.log_event("removed", now, record, prev=prev.value)
    return Acted.DONE


def drain(queue: QueueState, delayed: bool, now: int) -> None:
    """Deletes waiting jobs, but not the next job of a schedule: draining a queue does not stop its schedules."""
    for container in (queue.ready, queue.delayed) if delayed else (queue.ready,):
        for _, job_id in container.ordered():
            record = queue.jobs[job_id]
            if not queue.is_pending_repeat(record):
                families.leave(queue, record, now)
                queue.forget(record)


def clean(queue: QueueState, state: State, older_than: float, limit: int, now: int) -> list[str]:
    cutoff = now - round(older_than * 1000)
    found = [
        record
        for record in queue.jobs.values()
        if record.state is state
        and _since(record) <= cutoff
        and not record.held(now)
        and not queue.is_pending_repeat(record)
    ]
    found.sort(key=_since)
    gone = found[:limit] if limit else found
    for record in gone:
        families.leave(queue, record, now)
        queue.forget(record)
    queue.log_event("cleaned", now, count=str(len(gone)))
    return [record.id for record in gone]


def _since(record: Record) -> int:
    return record.finished or record.started or record.created


def obliterate(queue: QueueState, force: bool, now: int) -> None:
    """Deletes everything in the queue. Its workers stay connected and run what is added under this name later."""
    if queue.active and not force:
        raise WrongState(
            f"queue {queue.name!r} has {counted(len(queue.active), 'active job')}; force=True deletes them too"
        )
    queue.repeats.clear()
    for record in list(queue.jobs.values()):
        families.leave(queue, record, now)
        queue.forget(record)
    queue.unique.clear()
    queue.log.clear()
    queue.paused = False
    queue.rate = queue.concurrency = None
    queue.throttled_until = queue.last_id = 0
    queue.work.wake()


def pause(queue: QueueState, now: int) -> None:
    if not queue.paused:
        queue.paused = True
        queue.log_event("paused", now)


def resume(queue: QueueState, now: int) -> None:
    if queue.paused:
        queue.paused = False
        queue.log_event("resumed", now)
        queue.work.wake()
