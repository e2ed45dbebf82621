"""Jobs that wait for other jobs."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.memory.connection import Access
from jobwire.backends.memory.operate import admin
from jobwire.backends.memory.produce.add import add_flow
from jobwire.backends.memory.store import families
from jobwire.boundary import Acted, Added, FlowNode
from jobwire.model import Children, JobKey


class MemoryFlows:
    """Implements Flows."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def check_flow(self, queues: Sequence[str]) -> None:
        """Accepts any queues: all of a store's queues can be in one flow."""

    async def add_flow(self, roots: Sequence[FlowNode]) -> Sequence[Added]:
        store = self._access.store()
        with store.lock:
            return add_flow(store, roots, store.now())

    async def children(self, queue: str, job_id: str) -> Children:
        with self._access.locked(queue) as (state, _):
            return families.described(state.jobs.get(job_id))

    async def children_of(self, keys: Sequence[JobKey], limit: int) -> Sequence[Sequence[JobKey]]:
        store = self._access.store()
        with store.lock:
            return [families.keys_of(store.queue(key.queue).jobs.get(key.id), limit) for key in keys]

    async def remove_alone(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._access.each(queue, job_ids, admin.remove_alone)
