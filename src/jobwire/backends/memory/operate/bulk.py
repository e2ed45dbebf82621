"""Counts and changes over all jobs of a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jobwire.backends.memory.connection import Access
from jobwire.backends.memory.operate import admin
from jobwire.backends.memory.store.queue_state import QueueState
from jobwire.model import State


class MemoryBulk:
    """Implements Bulk."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def now(self) -> float:
        return self._access.store().now() / 1000

    async def retry_all(self, queue: str, state: State, before: float, limit: int) -> int:
        with self._access.locked(queue) as (held, now):
            return _retry_all(held, state, before, limit=limit, now=now)

    async def promote_all(self, queue: str, limit: int) -> int:
        with self._access.locked(queue) as (state, now):
            return _promote_all(state, limit, now)

    async def counts_by_priority(self, queue: str, priorities: Sequence[int]) -> Mapping[int, int]:
        with self._access.locked(queue) as (state, now):
            state.make_due_ready(now)
            waiting = Counter(record.priority for record in state.jobs.values() if record.state is State.WAITING)
            return {priority: waiting[priority] for priority in priorities}


def _retry_all(queue: QueueState, state: State, before: float, *, limit: int, now: int) -> int:
    old = [job_id for job_id in queue.finished[state] if (queue.jobs[job_id].finished or 0) <= before * 1000]
    for job_id in old[:limit]:
        admin.retry(queue, job_id, now)
    return len(old[:limit])


def _promote_all(queue: QueueState, limit: int, now: int) -> int:
    ids = [job_id for _, job_id in queue.delayed.ordered()][:limit]
    for job_id in ids:
        admin.promote(queue, job_id, now)
    return len(ids)
