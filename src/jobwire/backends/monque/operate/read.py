"""Reads jobs by id and in pages, and counts them.

Waiting jobs are in the order of their due times, finished ones in that of their ends, newest first. No index has the
jobs of a queue in the order of their ends. So a page of them reads and sorts all, if they are a few thousand. If there
are more, they are in the order of the due times of their last runs, which is nearly the same and has an index.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId

from jobwire.backends.monque.codec import STATES, hashable, job_of, key_of, native_status
from jobwire.backends.monque.connection.clock import moment, ms_of
from jobwire.backends.monque.connection.indexes import CLAIM_INDEX, STATE_INDEX, hinted
from jobwire.backends.monque.connection.side_data import SideData
from jobwire.backends.monque.connection.store import Document, Store
from jobwire.errors import InvalidOption
from jobwire.model import Job, Page, State

_COUNTING = 30.0
"""Seconds that counting may take: it reads every job of the queue."""
MOST_SORTED = 5000
"""Finished jobs of a queue that are sorted for a page."""
_ENDED, _DUE = "updatedAt", "nextRunAt"
NATIVE = {state: status for status, state in STATES.items()}


async def get(store: Store, side: SideData, queue: str, job_ids: Sequence[str]) -> list[Job | None]:
    keys = [key_of(job_id) for job_id in job_ids]
    async with store.reaching():
        found = {one["_id"]: one for one in await store.jobs.find({"_id": {"$in": keys}, "name": queue}).to_list()}
    jobs = await described(store, side, list(found.values()))
    by_key = {job.raw["_id"]: job for job in jobs}
    return [by_key.get(key) for key in keys]


async def described(store: Store, side: SideData, documents: Sequence[Document]) -> list[Job]:
    """Returns the jobs of documents, with their side data.

    The side data is read after the documents: it was written before the job was completed, so its result is found.
    """
    if not documents:
        return []
    about = await side.of([one["_id"] for one in documents])
    now = store.clock.now_ms()
    return [
        job_of(one, about.get(hashable(one["_id"])), now=now, attempts=store.address.max_retries) for one in documents
    ]


def in_state(queue: str, state: State, now: int) -> Document | None:
    """Returns the filter of a queue's jobs in a state, None if the protocol has no such state."""
    if state is State.DELAYED:
        return {"name": queue, "status": "pending", "nextRunAt": {"$gt": moment(now)}}
    if state is State.WAITING:
        return {"name": queue, "status": "pending", "nextRunAt": {"$lte": moment(now)}}
    return {"name": queue, "status": NATIVE[state]} if state in NATIVE else None


async def jobs(
    store: Store,
    side: SideData,
    queue: str,
    state: State,
    *,
    limit: int,
    cursor: str | None,
    skip: int,
    reverse: bool,
) -> Page:
    condition = in_state(queue, state, store.clock.now_ms())
    if condition is None:
        return Page()
    position = None if cursor is None else _position(cursor)
    async with store.reaching():
        field = position.field if position is not None else await _order(store, condition, state)
        way = -1 if state.finished else 1
        way = -way if reverse else way
        found: list[Document] = []
        for part in _parts(condition, field, position, way):
            clauses, wanted = part.clauses(condition, way), limit + 1 - len(found)
            if field == _DUE and part.dated:
                clauses += await _until(store, clauses, part.position, way, skip + wanted)
            those = await _read(store, clauses, part.order(way), skip, wanted)
            if skip and not those:
                skip -= await store.jobs.count_documents({"$and": clauses}, limit=skip)
            elif those:
                skip = 0
            found += those
            if len(found) > limit:
                break
    shown = found[:limit]
    following = _mark(field, shown[-1]) if len(found) > limit else None
    return Page(await described(store, side, shown), following)


async def _read(
    store: Store, clauses: Sequence[Document], order: list[tuple[str, int]], skip: int, limit: int
) -> list[Document]:
    return await hinted(
        lambda hint: store.jobs.find({"$and": clauses}, sort=order, skip=skip, limit=limit, hint=hint).to_list(),
        STATE_INDEX if order[0][0] == _ENDED else CLAIM_INDEX,
    )


async def _order(store: Store, condition: Document, state: State) -> str:
    """Returns the field by which the first page is sorted, and so the pages after it."""
    if not state.finished:
        return _DUE
    return _DUE if await store.count_up_to(condition, MOST_SORTED) > MOST_SORTED else _ENDED


async def _until(
    store: Store, clauses: Sequence[Document], position: _Position | None, way: int, jobs: int
) -> Sequence[Document]:
    """Returns the condition that ends a page at the due time of its last job. The index has no order of jobs that are
    due at the same time. With this condition the server sorts those of the page, and no others."""
    if position is not None:
        clauses = [*clauses[:1], {_DUE: {"$gt" if way > 0 else "$lt": position.at}}]
    times = await hinted(
        lambda hint: store.jobs.find(
            {"$and": clauses}, {"_id": 0, _DUE: 1}, sort=[(_DUE, way)], skip=jobs - 1, limit=1, hint=hint
        ).to_list(),
        CLAIM_INDEX,
    )
    last = times[0].get(_DUE) if times else None
    return [{_DUE: {"$lte" if way > 0 else "$gte": last}}] if isinstance(last, datetime) else []


@dataclass(frozen=True, slots=True)
class _Position:
    """The last job of a page, as its cursor has it. Pages stay the same when jobs are added or deleted."""

    field: str
    at: datetime | None
    """None if the field has no date."""
    key: Any


@dataclass(frozen=True, slots=True)
class _Part:
    """The jobs that have a date in the field sorted by, or those that have none, from a position on.

    The server compares a date with dates only. So jobs of other programs without one are read on their own, by `_id`.
    """

    field: str
    dated: bool
    position: _Position | None

    def clauses(self, condition: Document, way: int) -> list[Document]:
        """Returns the filter. The first condition after a date is for the index, which can't use the others."""
        operator = "$gt" if way > 0 else "$lt"
        if not self.dated:
            without: Document = {"$or": [{self.field: {"$type": _NO_DATES}}, {self.field: {"$exists": False}}]}
            return [condition, without, *([{"_id": {operator: self.position.key}}] if self.position else [])]
        if self.position is None:
            return [condition, {self.field: {"$type": "date"}}]
        at, key = self.position.at, self.position.key
        after = [{self.field: {operator: at}}, {self.field: at, "_id": {operator: key}}]
        return [condition, {self.field: {f"{operator}e": at}, "$or": after}]

    def order(self, way: int) -> list[tuple[str, int]]:
        return [(self.field, way), ("_id", way)] if self.dated else [("_id", way)]


_NO_DATES = [
    *("null", "number", "string", "object", "binData", "objectId", "bool", "timestamp", "regex"),
    *("javascript", "minKey", "maxKey"),
]
"""Types that are not a date. An array has those of its elements."""


def _parts(condition: Document, field: str, position: _Position | None, way: int) -> list[_Part]:
    """Returns the parts of a listing in their order: jobs without a date are the oldest."""
    if field in condition:  # a range of dates
        return [_Part(field, True, position)]
    parts = [_Part(field, True, None), _Part(field, False, None)]
    parts = parts if way < 0 else parts[::-1]
    if position is None:
        return parts
    dated = position.at is not None
    first = next(number for number, part in enumerate(parts) if part.dated is dated)
    return [_Part(field, dated, position), *parts[first + 1 :]]


def _mark(field: str, document: Document) -> str:
    """Returns the cursor of a page's last job: the field sorted by, its date if it has one, and the `_id`."""
    key = document["_id"]
    position = [field == _ENDED, ms_of(document.get(field)), str(key), isinstance(key, ObjectId)]
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def _position(cursor: str) -> _Position:
    """Returns the position of a cursor. Raises InvalidOption if it is not one."""
    try:
        by_end, value, text, is_object_id = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        at = moment(int(value)) if value is not None else None
        return _Position(_ENDED if by_end else _DUE, at, ObjectId(text) if is_object_id else str(text))
    except Exception as fault:
        raise InvalidOption("cursor", cursor, "must be the cursor of an earlier page") from fault


async def counts(store: Store, queue: str) -> Mapping[State, int]:
    now = moment(store.clock.now_ms())
    later = {"$and": [{"$eq": ["$status", "pending"]}, {"$gt": ["$nextRunAt", now]}]}
    stages: list[Document] = [
        {"$match": {"name": queue}},
        {"$group": {"_id": {"status": "$status", "later": later}, "jobs": {"$sum": 1}}},
    ]
    async with store.reaching(_COUNTING):
        groups = await (await store.jobs.aggregate(stages)).to_list()
    found = dict.fromkeys([*STATES.values(), State.DELAYED], 0)
    for group in groups:
        state = STATES.get(native_status(group["_id"]))
        if state is not None:
            found[State.DELAYED if group["_id"]["later"] else state] += int(group["jobs"])
    return found
