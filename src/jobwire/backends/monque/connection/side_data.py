"""The side data of a collection: what Monque has no fields for, in the collection `<collection>_jobwire`.

* `{_id: <the job's>, name, progress, runs}`: progress as JSON text, and how runs of our workers ended;
* `{_id, name, job, line}`: one line of a job's log;
* `{_id: "queue:<name>", name, paused}`: a pause, which our workers observe and the peer's do not read;
* `{_id: "jobwire:version", version}`: the version of all this, see `side_version`.

The end of a run is recorded before the job itself is settled, so that a reader of a completed job finds its result. It
is recorded under the `updatedAt` that settling will give to the job. If the worker has lost the job, the record may
have been written, but no job ever has that `updatedAt`.
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
"""Seconds for which a worker uses what it last read about a pause. A pause made elsewhere takes effect after this time
at the latest."""


@dataclass(frozen=True, slots=True)
class Run:
    """The end of one run, as it is recorded."""

    job: Any
    name: str
    at_ms: int
    token: str
    started: datetime | None
    worker: str
    result: str | None = None
    stack: str = ""
    repeats: bool = False
    """True for a recurring job. Only its last run is kept, since the job itself stays for good."""
    next_due: datetime | None = None
    """The due time of the next attempt, if one follows."""

    @property
    def key(self) -> str:
        """The time of the outcome, and the token of its claim: of two claims that settle in the same millisecond, one
        is refused, and deletes its own record."""
        return f"{self.at_ms}-{self.token}"

    @property
    def request(self) -> UpdateOne:
        """The update that records the run."""
        end: Document = {"worker": self.worker, "startedAt": self.started}
        if self.result is not None:
            end["result"] = self.result
        if self.stack:
            end["stack"] = self.stack
        if self.next_due is not None:
            end["nextRunAt"] = self.next_due
        change: Document = {"runs": {self.key: end}} if self.repeats else {f"runs.{self.key}": end}
        return UpdateOne({"_id": self.job}, {"$set": {"name": self.name, **change}}, upsert=True)


class SideData:
    """Reads and writes the side data of one collection."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pauses: dict[str, tuple[bool, float]] = {}

    async def record(self, runs: Sequence[Run]) -> None:
        """Records the ends of runs."""
        if runs:
            async with self._store.reaching():
                await self._store.unconfirmed_side.bulk_write([run.request for run in runs], ordered=False)

    async def remove_runs(self, runs: Sequence[Run]) -> None:
        """Deletes the records of runs whose job was lost."""
        requests = [UpdateOne({"_id": run.job}, {"$unset": {f"runs.{run.key}": ""}}) for run in runs]
        if requests:
            async with self._store.reaching():
                await self._store.unconfirmed_side.bulk_write(requests, ordered=False)

    async def of(self, keys: Collection[Any]) -> Mapping[Any, Document]:
        """Returns the side data of jobs, by the hashable form of their `_id`."""
        async with self._store.reaching():
            found = await self._store.side.find({"_id": {"$in": list(keys)}}).to_list()
        return {hashable(one["_id"]): one for one in found}

    async def forget(self, keys: Iterable[Any]) -> None:
        """Deletes the side data of jobs that were deleted."""
        gone = list(keys)
        for start in range(0, len(gone), 1000):
            some = gone[start : start + 1000]
            async with self._store.reaching():
                await self._store.side.delete_many({"$or": [{"_id": {"$in": some}}, {"job": {"$in": some}}]})

    async def forget_queue(self, queue: str) -> None:
        """Deletes all side data of a queue, a pause too."""
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
        if known is None or known[1] < asked:  # if not, this process changed it while the answer was on its way
            self._pauses[queue] = (paused, asked)
        return self._pauses[queue][0]

    async def paused_lately(self, queue: str) -> bool:
        """Returns True if the queue was paused when that was last read, at most a second ago."""
        known = self._pauses.get(queue)
        if known is not None and time.monotonic() - known[1] < _PAUSE_KNOWN_FOR:
            return known[0]
        return await self.paused(queue)
