"""Reads jobs by id and in pages, and counts them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from bson import ObjectId

from jobwire.backends.monque.codec import STATES, hashable, job_of, key_of, native_status
from jobwire.backends.monque.connection.clock import EARLIEST, moment, ms_of
from jobwire.backends.monque.connection.side_data import SideData
from jobwire.backends.monque.connection.store import Document, Store
from jobwire.errors import InvalidOption
from jobwire.model import Job, Page, State

_COUNTING = 30.0
"""Seconds that counting may take: it reads every job of the queue."""
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
    field, way = ("updatedAt", -1) if state.finished else ("nextRunAt", 1)
    way = -way if reverse else way
    clauses: list[Document] = [condition]
    if cursor is not None:
        clauses.append(_beyond(field, way, cursor))
    async with store.reaching():
        found = await store.jobs.find(
            {"$and": clauses}, sort=[(field, way), ("_id", way)], skip=skip, limit=limit + 1
        ).to_list()
    shown = found[:limit]
    following = _mark(field, shown[-1]) if len(found) > limit else None
    return Page(await described(store, side, shown), following)


def _mark(field: str, document: Document) -> str:
    """Returns the position of a page's last job: the value sorted by and the `_id`. Pages stay the same when jobs are
    added or deleted."""
    key = document["_id"]
    position = [ms_of(document.get(field)), str(key), isinstance(key, ObjectId)]
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def _beyond(field: str, way: int, cursor: str) -> Document:
    """Returns the filter of jobs after a cursor. Raises InvalidOption if it is not one."""
    try:
        value, text, is_object_id = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        at = moment(int(value)) if value is not None else EARLIEST
        key: Any = ObjectId(text) if is_object_id else str(text)
    except Exception as fault:
        raise InvalidOption("cursor", cursor, "must be the cursor of an earlier page") from fault
    operator = "$gt" if way > 0 else "$lt"
    return {"$or": [{field: {operator: at}}, {field: at, "_id": {operator: key}}]}


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
