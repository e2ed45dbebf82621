"""Deletes old finished jobs, and side data of jobs that a peer has deleted."""

from __future__ import annotations

from bson import ObjectId

from jobwire.backends.monque.codec import hashable
from jobwire.backends.monque.connection import indexes
from jobwire.backends.monque.connection.clock import moment
from jobwire.backends.monque.connection.side_data import SideData
from jobwire.backends.monque.connection.store import LONG, Document, Store
from jobwire.boundary import ConsumerSettings, DutyReport
from jobwire.checks import seconds
from jobwire.counted import counted
from jobwire.options import Keep

_AT_ONCE = 1000
_YOUNG_MS = 60_000
_FIRST = ObjectId("0" * 24)


class Retention:
    """Keeps as many finished jobs of a worker's queue as `Worker(keep_completed=…, keep_failed=…)` asks for. As in the
    peer, `cancelled` jobs stay, and recurring jobs that failed for good are deleted."""

    def __init__(self, store: Store, side: SideData, settings: ConsumerSettings) -> None:
        self._store = store
        self._side = side
        self._queue = settings.queue
        rules = {"completed": settings.keep_completed, "failed": settings.keep_failed}
        self._rules = {status: keep for status, keep in rules.items() if keep is not None and keep != Keep.ALL}
        self._indexed = False
        self._swept = _FIRST

    @property
    def wanted(self) -> bool:
        """True if the worker has a rule for finished jobs."""
        return bool(self._rules)

    async def run(self) -> DutyReport:
        """Deletes finished jobs by the worker's rules."""
        if not self._indexed and self._store.address.create_indexes:
            async with self._store.reaching(LONG):
                await self._store.jobs.create_indexes([indexes.retention_index()])
            self._indexed = True
        gone = 0
        for status, keep in self._rules.items():
            gone += await self._delete(status, keep)
        return DutyReport(note=f"deleted {counted(gone, 'old job')}" if gone else "")

    async def _delete(self, status: str, keep: Keep) -> int:
        finished: Document = {"name": self._queue, "status": status}
        gone = 0
        if keep.age is not None:
            limit = moment(self._store.clock.now_ms() - round(seconds("keep.age", keep.age) * 1000))
            gone += await self._delete_all({**finished, "updatedAt": {"$lt": limit}}, 0)
        if keep.count is not None:
            gone += await self._delete_all(finished, keep.count)
        return gone

    async def _delete_all(self, condition: Document, spare: int) -> int:
        """Deletes the jobs that meet the condition, except the newest `spare`. Returns the number of them."""
        gone = 0
        while True:
            async with self._store.reaching():
                found = await self._store.jobs.find(
                    condition, {"_id": 1}, sort=[("updatedAt", -1), ("_id", -1)], skip=spare, limit=_AT_ONCE
                ).to_list()
                keys = [one["_id"] for one in found]
                if keys:
                    deleted = await self._store.jobs.delete_many({"_id": {"$in": keys}, **condition})
                    gone += deleted.deleted_count
            await self._side.forget(keys)
            if len(keys) < _AT_ONCE:
                return gone

    async def sweep(self) -> DutyReport:
        """Deletes side data of deleted jobs. Each call reads the next thousand documents, so all are read in turn."""
        async with self._store.reaching():
            found = await self._store.side.find(
                {"_id": {"$gt": self._swept}}, {"_id": 1, "job": 1}, sort=[("_id", 1)], limit=_AT_ONCE
            ).to_list()
            about = {one["_id"]: one.get("job", one["_id"]) for one in found}
            named = {"_id": {"$in": list(about.values())}}
            living = {hashable(job["_id"]) for job in await self._store.jobs.find(named, {"_id": 1}).to_list()}
            orphans = [key for key, job in about.items() if hashable(job) not in living and self._is_old(key)]
            if orphans:
                await self._store.side.delete_many({"_id": {"$in": orphans}})
        self._swept = found[-1]["_id"] if len(found) == _AT_ONCE else _FIRST
        return DutyReport(
            note=f"deleted {counted(len(orphans), 'document')} of side data whose job was deleted" if orphans else ""
        )

    def _is_old(self, key: ObjectId) -> bool:
        """Returns False for side data of the last minute: its job may have been added between the two reads."""
        return self._store.clock.now_ms() - round(key.generation_time.timestamp() * 1000) > _YOUNG_MS
