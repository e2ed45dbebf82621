"""What Monque has no place for, kept beside its jobs in a collection of our own, `<collection>_jobwire`.

* `{_id: <the job's>, name, progress, runs}`: progress as JSON text, and how runs of our workers ended;
* `{_id, name, job, line}`: one line of a job's log;
* `{_id: "queue:<name>", name, paused}`: a pause, which our workers honour and the peer's do not know;
* `{_id: "jobwire:version", version}`: the version of all this, see `side_version`.

A run's end is noted before the job itself is settled, so that whoever sees a completed job finds its result. It is
noted under the `updatedAt` that the settling write will give to the job: of a worker that has lost the job, the note
may be written, but no job ever points to it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pymongo import UpdateOne

from jobwire.backends.monque.codec import hashable
from jobwire.backends.monque.connection.store import LONG, Document, Store

_PAUSE_KNOWN_FOR = 1.0
"""Seconds for which a worker trusts what it knows of a pause; so long a pause made elsewhere may take to reach it."""


@dataclass(frozen=True, slots=True)
class Run:
    """The end of one run."""

    job: Any
    name: str
    at_ms: int
    started: datetime | None
    worker: str
    result: str | None = None
    stack: str = ""
    repeats: bool = False
    """A recurring job keeps the note of its last run only: it has no last day."""

    @property
    def request(self) -> UpdateOne:
        end: Document = {"worker": self.worker, "startedAt": self.started}
        if self.result is not None:
            end["result"] = self.result
        if self.stack:
            end["stack"] = self.stack
        key = str(self.at_ms)
        change: Document = {"runs": {key: end}} if self.repeats else {f"runs.{key}": end}
        return UpdateOne({"_id": self.job}, {"$set": {"name": self.name, **change}}, upsert=True)


class SideData:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._pauses: dict[str, tuple[bool, float]] = {}

    async def record(self, runs: Sequence[Run]) -> None:
        if runs:
            async with self._store.reaching():
                await self._store.unconfirmed_side.bulk_write([run.request for run in runs], ordered=False)

    async def remove_runs(self, runs: Sequence[Run]) -> None:
        """Take back the notes of runs whose job was lost."""
        requests = [UpdateOne({"_id": run.job}, {"$unset": {f"runs.{run.at_ms}": ""}}) for run in runs]
        if requests:
            async with self._store.reaching():
                await self._store.unconfirmed_side.bulk_write(requests, ordered=False)

    async def of(self, keys: Collection[Any]) -> Mapping[Any, Document]:
        async with self._store.reaching():
            found = await self._store.side.find({"_id": {"$in": list(keys)}}).to_list()
        return {hashable(one["_id"]): one for one in found}

    async def forget(self, keys: Iterable[Any]) -> None:
        """Delete what belongs to jobs that are gone."""
        gone = list(keys)
        for start in range(0, len(gone), 1000):
            some = gone[start : start + 1000]
            async with self._store.reaching():
                await self._store.side.delete_many({"$or": [{"_id": {"$in": some}}, {"job": {"$in": some}}]})

    async def forget_queue(self, queue: str) -> None:
        self._pauses.pop(queue, None)
        async with self._store.reaching(LONG):
            await self._store.side.delete_many({"name": queue})

    # --- pause ------------------------------------------------------------------------------------------------------

    async def set_paused(self, queue: str, paused: bool) -> None:
        async with self._store.reaching():
            await self._store.side.update_one(
                {"_id": f"queue:{queue}"}, {"$set": {"name": queue, "paused": paused}}, upsert=True
            )
        self._pauses[queue] = (paused, time.monotonic())

    async def paused(self, queue: str) -> bool:
        asked = time.monotonic()
        async with self._store.reaching():
            found = await self._store.side.find_one({"_id": f"queue:{queue}"}, {"paused": 1})
        paused = bool(found and found.get("paused"))
        known = self._pauses.get(queue)
        if known is None or known[1] < asked:  # else it was changed through us while the answer was on its way
            self._pauses[queue] = (paused, asked)
        return self._pauses[queue][0]

    async def paused_lately(self, queue: str) -> bool:
        known = self._pauses.get(queue)
        if known is not None and time.monotonic() - known[1] < _PAUSE_KNOWN_FOR:
            return known[0]
        return await self.paused(queue)
