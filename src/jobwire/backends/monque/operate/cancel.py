"""Cancels pending jobs."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.monque.codec import key_of
from jobwire.backends.monque.connection.clock import moment
from jobwire.backends.monque.connection.store import Store
from jobwire.backends.monque.operate.admin import act
from jobwire.boundary import Acted


class MonqueCancels:
    """Implements Cancels."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        acted: list[Acted] = []
        for job_id in job_ids:
            change = {"$set": {"status": "cancelled", "updatedAt": moment(self._store.clock.now_ms())}}
            done = await act(self._store, queue, job_id, {"status": "pending"}, change)
            # As in the peer, cancelling twice is not an error.
            acted.append(Acted.DONE if done is Acted.WRONG_STATE and await self._is_cancelled(job_id) else done)
        return acted

    async def _is_cancelled(self, job_id: str) -> bool:
        own = {"_id": key_of(job_id), "status": "cancelled"}
        async with self._store.reaching():
            return await self._store.jobs.find_one(own, {"_id": 1}) is not None
