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
from jobwire.backends.monque.connection.clock import EARLIEST, moment, ms_of
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
        clauses = [condition]
        if position is not None:
            clauses.append(position.beyond(way))
        if field == _DUE:
            clauses += await _until(store, condition, position, way, skip + limit + 1)
        found = await hinted(
            lambda hint: store.jobs.find(
                {"$and": clauses}, sort=[(field, way), ("_id", way)], skip=skip, limit=limit + 1, hint=hint
            ).to_list(),
            CLAIM_INDEX if field == _DUE else STATE_INDEX,
        )
    shown = found[:limit]
    following = _mark(field, shown[-1]) if len(found) > limit else None
    return Page(await described(store, side, shown), following)


async def _order(store: Store, condition: Document, state: State) -> str:
    """Returns the field by which the first page is sorted, and so the pages after it."""
    if not state.finished:
        return _DUE
    return _DUE if await store.count_up_to(condition, MOST_SORTED) > MOST_SORTED else _ENDED


async def _until(
    store: Store, condition: Document, position: _Position | None, way: int, jobs: int
) -> Sequence[Document]:
    """Returns the condition that ends a page at the due time of its last job. The index has no order of jobs that are
    due at the same time. With this condition the server sorts those of the page, and no others."""
    clauses = [condition]
    if position is not None:
        clauses.append({_DUE: {"$gt" if way > 0 else "$lt": position.at}})
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
    at: Any
    key: Any

    def beyond(self, way: int) -> Document:
        """Returns the filter of the jobs after it. Its first condition is for the index, which can't use the others."""
        operator = "$gt" if way > 0 else "$lt"
        after = [{self.field: {operator: self.at}}, {self.field: self.at, "_id": {operator: self.key}}]
        return {self.field: {f"{operator}e": self.at}, "$or": after}


def _mark(field: str, document: Document) -> str:
    """Returns the cursor of a page's last job: the field sorted by, its value, and the `_id`."""
    key = document["_id"]
    position = [field == _ENDED, ms_of(document.get(field)), str(key), isinstance(key, ObjectId)]
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def _position(cursor: str) -> _Position:
    """Returns the position of a cursor. Raises InvalidOption if it is not one."""
    try:
        by_end, value, text, is_object_id = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        at = moment(int(value)) if value is not None else EARLIEST
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
