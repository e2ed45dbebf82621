"""Changes to jobs that are in the store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from jobwire.backends.memory.connection import Access
from jobwire.backends.memory.operate import admin
from jobwire.backends.memory.rules import MAX_PRIORITY
from jobwire.backends.memory.store.queue_state import QueueState
from jobwire.boundary import Acted
from jobwire.errors import InvalidOption
from jobwire.model import State


class MemoryEdits:
    """Implements Edits."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def update_data(self, queue: str, job_id: str, data: bytes) -> Acted:
        with self._access.locked(queue) as (state, _):
            if job_id not in state.jobs:
                return Acted.NOT_FOUND
            state.jobs[job_id].data = data
            return Acted.DONE

    async def change_priority(self, queue: str, job_id: str, priority: int, front: bool) -> Acted:
        return self._access.each(queue, [job_id], partial(_change_priority, priority=priority, front=front))[0]

    async def change_delay(self, queue: str, job_id: str, delay: float) -> Acted:
        return self._access.each(queue, [job_id], partial(_change_delay, delay=delay))[0]

    async def clear_logs(self, queue: str, job_id: str, keep: int) -> Acted:
        with self._access.locked(queue) as (state, _):
            record = state.jobs.get(job_id)
            if record is None:
                return Acted.NOT_FOUND
            record.logs = record.logs[-keep:] if keep else []
            return Acted.DONE

    async def retry_anew(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._access.each(queue, job_ids, _retry_anew)


def _retry_anew(queue: QueueState, job_id: str, now: int) -> Acted:
    acted = admin.retry(queue, job_id, now)
    if acted is Acted.DONE:
        queue.jobs[job_id].attempts_made = queue.jobs[job_id].starts = 0
    return acted


def _change_priority(queue: QueueState, job_id: str, now: int, *, priority: int, front: bool) -> Acted:
    record = queue.jobs.get(job_id)
    if not 0 <= priority <= MAX_PRIORITY:
        raise InvalidOption("priority", priority, f"must be from 0 (first) to {MAX_PRIORITY} (last)")
    if record is None:
        return Acted.NOT_FOUND
    record.priority = priority
    if queue.ready.discard(job_id):
        queue.put_ready(record, front=front)
        queue.work.wake()
    return Acted.DONE


def _change_delay(queue: QueueState, job_id: str, now: int, *, delay: float) -> Acted:
    record = queue.jobs.get(job_id)
    if record is None:
        return Acted.NOT_FOUND
    if record.state is not State.DELAYED:
        return Acted.WRONG_STATE
    queue.take_out(record)
    record.due = now + round(delay * 1000)
    queue.put(record, now, prev=State.DELAYED)
    return Acted.DONE
