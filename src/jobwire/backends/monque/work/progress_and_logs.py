"""Stores the progress and the logs of jobs as side data. `connection.side_data` describes the documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bson import ObjectId

from jobwire.backends.monque.codec import key_of
from jobwire.backends.monque.connection.store import Store
from jobwire.boundary import Acted


class MonqueProgress:
    """Implements Progress."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted:
        key = key_of(job_id)
        async with self._store.reaching():
            if not await _exists(self._store, queue, key):
                return Acted.NOT_FOUND
            change = {"$set": {"name": queue, "progress": value.decode()}}
            await self._store.side.update_one({"_id": key}, change, upsert=True)
        return Acted.DONE


class MonqueLogs:
    """Implements Logs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        key = key_of(job_id)
        async with self._store.reaching():
            if not await _exists(self._store, queue, key):
                return Acted.NOT_FOUND
            text = line.encode(errors="replace").decode()
            await self._store.side.insert_one({"_id": ObjectId(), "name": queue, "job": key, "line": text})
            if keep:
                oldest_kept = await self._store.side.find(
                    {"job": key}, {"_id": 1}, sort=[("_id", -1)], skip=keep - 1, limit=1
                ).to_list()
                if oldest_kept:
                    await self._store.side.delete_many({"job": key, "_id": {"$lt": oldest_kept[0]["_id"]}})
        return Acted.DONE

    async def logs(self, queue: str, job_id: str, last: int = 0) -> Sequence[str]:
        own = {"job": key_of(job_id), "name": queue}
        async with self._store.reaching():
            lines = await self._store.side.find(own, sort=[("_id", -1)], limit=last).to_list()
        return [str(line.get("line")) for line in reversed(lines)]


async def _exists(store: Store, queue: str, key: Any) -> bool:
    return await store.jobs.find_one({"_id": key, "name": queue}, {"_id": 1}) is not None
