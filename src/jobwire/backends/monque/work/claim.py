"""Claims due jobs of one queue.

Jobs are claimed in two steps. The jobs that are due first are read, many at once, and then claimed by updates that
match only those still pending. Other workers may claim at the same time, with the peer's findOneAndUpdate or like us:
an update of one document is atomic, so each job is claimed once.

While no other worker claims from the queue, one read serves several claims: the jobs that come next are kept as a
shortlist for a moment, and a claim is sent in the same command as the outcomes. Once another worker is noticed, there
is no shortlist, and each claim begins at a random one of the first due jobs.
"""

from __future__ import annotations

import random
import time
from collections import deque
from typing import Any

import bson
from pymongo import errors as driver

from jobwire.backends.monque.codec import PRIVATE, id_fault, stalls_of
from jobwire.backends.monque.connection.clock import EARLIEST, moment, ms_of
from jobwire.backends.monque.connection.indexes import CLAIM_INDEX
from jobwire.backends.monque.connection.store import Document, Store
from jobwire.backends.monque.upkeep import malformed
from jobwire.backends.monque.work.settle import GONE, Request, several

_LEAST_AHEAD, _MOST_AHEAD = 32, 400
"""Bounds of the number of jobs that are read ahead. It doubles if all of them were claimed in time, else it halves."""
_AHEAD_BYTES = 1024 * 1024
"""About this much is read ahead at most. Large jobs are read when they are needed."""
_FRESH = 0.1
"""Seconds for which the shortlist is used. A job that should run before those on it waits this long at most."""
_CROWDED_FOR = 1.0
"""Seconds without a shortlist after another worker was noticed."""
_TRIES = 3
_NO_SUCH_INDEX = 2


class Claimer:
    """Claims jobs of one queue for one worker."""

    def __init__(self, store: Store, queue: str, worker: str, beat_ms: int, lease_ms: int) -> None:
        self._store = store
        self._queue = queue
        self._worker = worker
        self._beat_ms = beat_ms
        self._lease_ms = lease_ms
        self._shortlist: deque[Document] = deque()
        self._read_at = 0.0
        self._taking: dict[Any, float] = {}
        self._crowded_until = 0.0
        self._ahead = _LEAST_AHEAD
        self._hint: str | None = CLAIM_INDEX
        self._job_size = 1024

    @property
    def crowded(self) -> bool:
        """True if another worker was noticed lately."""
        return time.monotonic() < self._crowded_until

    def note_rivals(self) -> None:
        """Remembers that another worker claims from this queue."""
        self._crowded_until = time.monotonic() + _CROWDED_FOR
        self._shortlist.clear()

    def drop_shortlist(self) -> None:
        """Makes the next claim read the queue again, because this worker has changed it."""
        self._shortlist.clear()

    async def candidates(self, wanted: int, now: int) -> list[Document]:
        """Returns up to `wanted` jobs to claim, in order. The caller must pass them to `done_with` afterwards."""
        fresh = time.monotonic() - self._read_at <= _FRESH
        # A shortlist that is too short is read again: the claim would get fewer jobs than there are.
        if not fresh or len(self._shortlist) < wanted:
            begun = time.monotonic()
            busy = len(self._taking)
            self._ahead = min(self._ahead * 2, _MOST_AHEAD) if fresh else max(self._ahead // 2, _LEAST_AHEAD)
            ahead = min(self._ahead, _AHEAD_BYTES // self._job_size)
            found = await self._read(max(ahead, wanted) + busy, now)
            if found:
                self._job_size = len(bson.encode(found[0]))
            # Jobs that another call of this worker was claiming during the read are not ours to claim.
            taken = {key for key, since in self._taking.items() if since >= begun or since == 0.0}
            self._shortlist = deque(one for one in found if one["_id"] not in taken)
            self._read_at = begun
            self._taking = {key: since for key, since in self._taking.items() if since == 0.0}
        candidates = [self._shortlist.popleft() for _ in range(min(wanted, len(self._shortlist)))]
        for one in candidates:
            self._taking[one["_id"]] = 0.0
        return candidates

    def done_with(self, candidates: list[Document]) -> None:
        """Marks candidates as claimed, by us or by another worker."""
        for one in candidates:
            self._taking[one["_id"]] = time.monotonic()

    def _due(self, now: int) -> Document:
        return {"name": self._queue, "status": "pending", "nextRunAt": {"$lte": moment(now)}}

    async def _read(self, limit: int, now: int) -> list[Document]:
        due = self._due(now)
        found = await self._find(due, limit)
        sound = [one for one in found if id_fault(one["_id"]) is None]
        if len(sound) < len(found):  # they are failed here, else every claim would read them again
            await malformed.fail_unsound_ids(self._store, due, len(found))
        return sound

    async def _find(self, due: Document, limit: int) -> list[Document]:
        # A negative limit asks for a single reply, which the server ends at 16 MB: large jobs do not fill the memory.
        # Without a batch size it would also end after 101 jobs.
        async with self._store.reaching():
            try:
                return await self._store.jobs.find(
                    due, sort=[("nextRunAt", 1)], limit=-limit, batch_size=limit, hint=self._hint
                ).to_list()
            except driver.OperationFailure as error:
                if error.code != _NO_SUCH_INDEX or self._hint is None:
                    raise
                self._hint = None  # the collection has indexes of its owner's choice
                return await self._store.jobs.find(
                    due, sort=[("nextRunAt", 1)], limit=-limit, batch_size=limit
                ).to_list()

    def claim_fields(self, token: str, now: int) -> Document:
        """Returns the fields that a claim sets: all of the peer's, and our own sub-document."""
        at = moment(now)
        return {
            "status": "processing",
            "claimedBy": self._worker,
            "lockedAt": at,
            "lastHeartbeat": at,
            "heartbeatInterval": self._beat_ms,
            "updatedAt": at,
            PRIVATE: {"claim": token, "by": self._worker, "at": at, "until": moment(now + self._lease_ms)},
        }

    def requests(self, candidates: list[Document], token: str, now: int) -> list[Request]:
        """Returns the updates that claim the jobs, and sets the same fields in the given documents."""
        fields = self.claim_fields(token, now)
        still_there = {"status": "pending", "nextRunAt": {"$lte": moment(now)}}
        by_stalls: dict[int, list[Any]] = {}
        for one in candidates:
            by_stalls.setdefault(stalls_of(one), []).append(one["_id"])
        requests: list[Request] = []
        for stalls, keys in by_stalls.items():
            change = fields if not stalls else {**fields, PRIVATE: {**fields[PRIVATE], "stalls": stalls}}
            requests.append(several(keys, still_there, {"$set": change}))
        for one in candidates:
            stalls = stalls_of(one)
            one.update(fields if not stalls else {**fields, PRIVATE: {**fields[PRIVATE], "stalls": stalls}})
        return requests

    async def won(self, keys: list[Any], token: str) -> list[Document]:
        """Reads and returns the jobs that this claim got, in order."""
        mine = {"_id": {"$in": keys}, "status": "processing", "claimedBy": self._worker, f"{PRIVATE}.claim": token}
        async with self._store.reaching():
            found = {one["_id"]: one for one in await self._store.jobs.find(mine).to_list()}
        return [found[key] for key in keys if key in found]

    async def take_among_rivals(
        self, wanted: int, token: str, now: int, *, woken: bool = False
    ) -> tuple[list[Document], bool]:
        """Claims while other workers do. Returns the jobs, and whether there may be more.

        A change wakes a worker of every process. All but one of them come too late, so a worker that was woken asks for
        one job in one step: the others learn from one command that it is gone, and not from four.
        """
        if wanted == 1 or woken:
            one = await self._take_one(token, now)
            return ([], False) if one is None else ([one], wanted > 1)
        for _ in range(_TRIES):
            found = await self._read(3 * wanted, now)
            if not found:
                return [], False
            # If all workers began at the first due job, they would collide at every job.
            start = random.randint(0, max(0, len(found) - wanted))
            chosen = found[start : start + wanted]
            async with self._store.reaching():
                result = await self._store.jobs.bulk_write(self.requests(chosen, token, now), ordered=False)
            if result.matched_count == len(chosen):
                return chosen, len(found) > len(chosen)
            self.note_rivals()
            got = await self.won([one["_id"] for one in chosen], token) if result.matched_count else []
            if got:
                return got, True
        return [], True

    async def _take_one(self, token: str, now: int) -> Document | None:
        """Claims one job as the peer does: the server finds and updates it in one step."""
        due = {**self._due(now), "_id": malformed.SOUND_ID}
        fields = self.claim_fields(token, now)
        change = {name: {"$literal": value} for name, value in fields.items() if name != PRIVATE}
        stalls = {"$cond": [{"$isNumber": f"${PRIVATE}.stalls"}, {"stalls": f"${PRIVATE}.stalls"}, {}]}
        ours = {"$mergeObjects": [{"$literal": fields[PRIVATE]}, stalls]}
        async with self._store.reaching():
            one = await self._store.jobs.find_one_and_update(
                due, [{"$set": {**change, PRIVATE: ours}}],
                sort=[("nextRunAt", 1)], hint=self._hint, return_document=True,
            )  # fmt: skip
            fault = None if one is None else id_fault(one["_id"])
            if fault is not None:
                # The filter uses the token, since the `_id` was not read as it is stored.
                mine = {"name": self._queue, "status": "processing", f"{PRIVATE}.claim": token}
                await self._store.jobs.update_one(mine, {"$set": malformed.failure(self._store, fault), "$unset": GONE})
        return one if fault is None else None

    async def next_due(self) -> int | None:
        """Returns the time in ms at which the first pending job is due, None if there is none."""
        dated = {"$gte": EARLIEST, "$not": {"$type": "array"}}
        pending = {"name": self._queue, "status": "pending", "nextRunAt": dated}
        async with self._store.reaching():
            first = await self._store.jobs.find_one(pending, {"nextRunAt": 1}, sort=[("nextRunAt", 1)])
        return ms_of(first["nextRunAt"]) if first is not None else None
