"""Figures of many queues, from a walk through the index of claims, which has name, status and due time of every job.

The jobs of a queue with one status are one range of that index. A step of the walk counts a thousand entries, so many
small ranges in one call. The range that it ends in is counted by itself, up to a limit, and the next step begins after
it. So the cost depends on the number of counted jobs and not on that of all jobs, and only the index is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobwire.backends.monque.codec import STATES, text_of
from jobwire.backends.monque.connection.clock import moment
from jobwire.backends.monque.connection.indexes import CLAIM_INDEX, hinted
from jobwire.backends.monque.connection.store import CALL, Document, Store
from jobwire.backends.monque.operate.read import in_state
from jobwire.boundary import QueueFigures, Reading, Turnover
from jobwire.model import State

PAUSED = {"_id": {"$regex": "^queue:"}, "paused": True}
_STEP = 1000
_WITHIN_MS = round(CALL * 1000)
_COUNTED = (*STATES.values(), State.DELAYED)
_STATUSES = sorted(STATES)
_ORDER = {"name": 1, "status": 1, "nextRunAt": 1, "claimedBy": 1}


@dataclass(slots=True)
class _Counted:
    """The jobs of one queue, as far as they were counted."""

    counts: dict[State, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    more: set[State] = field(default_factory=set[State])
    oldest: datetime | None = None


async def figures(store: Store, queues: Sequence[str], most: int, since: datetime | None) -> Reading:
    """Returns figures of queues. A queue that does not exist has no jobs in any state."""
    if not queues:
        return Reading([])
    await store.look_at_clock()
    now = store.clock.now_ms()
    async with store.reaching():
        found = await hinted(lambda hint: _Walk(store, most, now, hint).run(queues), CLAIM_INDEX)
        paused = set(await store.side.distinct("name", PAUSED))
        turnover: Mapping[str, Turnover] = {} if since is None else await _turnover(store, since, 10 * most)
    still = Turnover(0, 0, 0)

    def of(name: str) -> QueueFigures:
        one = found.get(name) or _Counted()
        more = frozenset(one.more)
        return QueueFigures(name, one.counts, one.oldest, name in paused, more, turnover.get(name, still))

    return Reading([of(name) for name in queues], moment(now))


class _Walk:
    """One walk through the index."""

    def __init__(self, store: Store, most: int, now: int, hint: str | None) -> None:
        self._store = store
        self._most = most
        self._now = now
        self._options: dict[str, Any] = {"maxTimeMS": _WITHIN_MS, **({} if hint is None else {"hint": hint})}
        self._found: dict[str, _Counted] = {}

    async def run(self, queues: Sequence[str]) -> Mapping[str, _Counted]:
        first, last = min(queues), max(queues)
        # What is left to read, the first part last: the rest of one queue, and the queues after it.
        left: list[Document] = [{"name": {"$gte": first, "$lte": last}, "status": {"$in": _STATUSES}}]
        while left:
            end = await self._step(left.pop())
            if end is not None:
                name, status = end
                await self._count(name, status)
                left = [
                    {"name": {"$gt": name, "$lte": last}, "status": {"$in": _STATUSES}},
                    {"name": name, "status": {"$in": [one for one in _STATUSES if one > status]}},
                ]
        return self._found

    async def _step(self, condition: Document) -> tuple[str, str] | None:
        """Counts a number of entries. Returns the range that they end in, which has perhaps more, or None if these were
        all."""
        group: Document = {
            "_id": {"name": "$name", "status": "$status"},
            "jobs": {"$sum": 1},
            "later": {"$sum": {"$cond": [{"$gt": ["$nextRunAt", moment(self._now)]}, 1, 0]}},
            "oldest": {"$min": "$nextRunAt"},
        }
        stages: list[Document] = [{"$match": condition}, {"$sort": _ORDER}, {"$limit": _STEP}, {"$group": group}]
        ranges = await (await self._store.jobs.aggregate(stages, **self._options)).to_list()
        ends = [(one["_id"]["name"], one["_id"]["status"]) for one in ranges]
        for (name, status), one in zip(ends, ranges, strict=True):
            later = one["later"] if status == "pending" else 0
            self._add(name, STATES[status], one["jobs"] - later)
            if later:
                self._add(name, State.DELAYED, later)
            if status == "pending" and one["jobs"] > later and isinstance(one["oldest"], datetime):
                self._found[name].oldest = one["oldest"]
        return max(ends) if sum(one["jobs"] for one in ranges) == _STEP else None

    def _add(self, name: str, state: State, jobs: int) -> None:
        counted = self._found.setdefault(name, _Counted())
        counted.counts[state] = min(jobs, self._most)
        if jobs > self._most:
            counted.more.add(state)

    async def _count(self, name: str, status: str) -> None:
        """Counts one range by itself, which is ten times as fast per entry."""
        for state in (State.WAITING, State.DELAYED) if status == "pending" else (STATES[status],):
            condition = in_state(name, state, self._now)
            self._add(name, state, 0 if condition is None else await self._store.count_up_to(condition, self._most))


async def _turnover(store: Store, since: datetime, most: int) -> Mapping[str, Turnover]:
    """Counts the jobs that were added, completed and failed since a time, of all queues, by the indexes of times."""
    added: Document = {"_id": "$name", "jobs": {"$sum": 1}}
    ended: Document = {
        "_id": "$name",
        "completed": {"$sum": {"$cond": [{"$eq": ["$status", "completed"]}, 1, 0]}},
        "failed": {"$sum": {"$cond": [{"$eq": ["$status", "failed"]}, 1, 0]}},
    }
    found: list[Mapping[str, Document]] = []
    for field_name, group in (("createdAt", added), ("updatedAt", ended)):
        stages: list[Document] = [{"$match": {field_name: {"$gt": since}}}, {"$limit": most}, {"$group": group}]
        answer = await store.jobs.aggregate(stages, maxTimeMS=_WITHIN_MS)
        found.append({one["_id"]: one for one in await answer.to_list() if text_of(one["_id"]) is not None})
    came, went = found
    none: Document = {"jobs": 0, "completed": 0, "failed": 0}
    return {
        name: Turnover(came.get(name, none)["jobs"], went.get(name, none)["completed"], went.get(name, none)["failed"])
        for name in {*came, *went}
    }
