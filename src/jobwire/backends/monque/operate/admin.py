"""Changes jobs and whole queues on behalf of an operator. The filters contain the peer's preconditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymongo import errors as driver

from jobwire.backends.monque.codec import ONE_OFF, PRIVATE, hashable, key_of
from jobwire.backends.monque.connection.clock import moment
from jobwire.backends.monque.connection.side_data import SideData
from jobwire.backends.monque.connection.store import LONG, Document, Store
from jobwire.backends.monque.operate.read import in_state
from jobwire.backends.monque.work.settle import RELEASE
from jobwire.boundary import Acted
from jobwire.errors import WrongState
from jobwire.model import State

_AT_ONCE = 1000
REVIVE_UNSETS: Document = {**RELEASE, "failReason": "", PRIVATE: ""}


async def retry(store: Store, queue: str, job_ids: Sequence[str]) -> list[Acted]:
    """Retries jobs as the peer's retryJob does, completed ones too: they are due now, with a failure count of 0."""
    acted: list[Acted] = []
    for job_id in job_ids:
        now = moment(store.clock.now_ms())
        revived = {"status": "pending", "failCount": 0, "nextRunAt": now, "updatedAt": now}
        finished = {"status": {"$in": ["failed", "cancelled", "completed"]}}
        change = {"$set": revived, "$unset": REVIVE_UNSETS}
        acted.append(await act(store, queue, job_id, finished, change))
    return acted


async def promote(store: Store, queue: str, job_ids: Sequence[str]) -> list[Acted]:
    """Makes delayed jobs due now."""
    now = moment(store.clock.now_ms())
    delayed = {"status": "pending", "nextRunAt": {"$gt": now}}
    change = {"$set": {"nextRunAt": now, "updatedAt": now}}
    return [await act(store, queue, job_id, delayed, change) for job_id in job_ids]


async def reschedule(store: Store, job_id: str, at_ms: int) -> Acted:
    """Changes the due time of a pending job."""
    change = {"$set": {"nextRunAt": moment(at_ms), "updatedAt": moment(store.clock.now_ms())}}
    return await act(store, None, job_id, {"status": "pending"}, change)


async def remove(store: Store, side: SideData, queue: str, job_ids: Sequence[str]) -> list[Acted]:
    """Deletes jobs that are not active, many in a few round trips. A job that another client deletes at the same time
    counts as deleted here."""
    keys = [key_of(job_id) for job_id in job_ids]
    gone: set[Any] = set()
    left: set[Any] = set()
    for start in range(0, len(keys), _AT_ONCE):
        own: Document = {"_id": {"$in": keys[start : start + _AT_ONCE]}, "name": queue}
        there = await _keys(store, own)
        async with store.reaching():
            deleted = await store.jobs.delete_many({**own, "status": {"$ne": "processing"}})
        stay = await _keys(store, own) if deleted.deleted_count < len(there) else set[Any]()
        left |= stay
        gone |= there - stay
    await side.forget(gone)
    return [Acted.DONE if key in gone else Acted.LOCKED if key in left else Acted.NOT_FOUND for key in keys]


async def _keys(store: Store, condition: Document) -> set[Any]:
    async with store.reaching():
        return {found["_id"] async for found in store.jobs.find(condition, {"_id": 1})}


async def act(store: Store, queue: str | None, job_id: str, condition: Document, change: Document) -> Acted:
    """Changes one job, of any queue if none is given, provided that it meets the condition."""
    own = _own(queue, key_of(job_id))
    async with store.reaching():
        try:
            result = await store.jobs.update_one({**own, **condition}, change)
        except driver.DuplicateKeyError:
            raise WrongState(f"job {job_id!r} can't be retried: another live job has its unique key") from None
    return Acted.DONE if result.matched_count else await _refusal(store, own)


def _own(queue: str | None, key: Any) -> Document:
    return {"_id": key} if queue is None else {"_id": key, "name": queue}


async def _refusal(store: Store, own: Document) -> Acted:
    async with store.reaching():
        found = await store.jobs.find_one(own, {"status": 1})
    if found is None:
        return Acted.NOT_FOUND
    return Acted.LOCKED if found.get("status") == "processing" else Acted.WRONG_STATE


# --- the queue as a whole -------------------------------------------------------------------------------------------


async def drain(store: Store, side: SideData, queue: str, delayed: bool) -> None:
    """Deletes the jobs that wait. Recurring jobs stay, since draining a queue does not stop its schedules."""
    condition: Document = {"name": queue, "status": "pending", **ONE_OFF}
    if not delayed:
        condition["nextRunAt"] = {"$lte": moment(store.clock.now_ms())}
    await delete(store, side, condition, 0)


async def clean(store: Store, side: SideData, queue: str, state: State, *, older_than: float, limit: int) -> list[str]:
    """Deletes up to `limit` jobs that have not been changed for `older_than` seconds. Returns their ids."""
    now = store.clock.now_ms()
    condition = in_state(queue, state, now)
    if condition is None or state is State.ACTIVE:
        return []
    long_ago = {"updatedAt": {"$lte": moment(now - round(older_than * 1000))}}
    if not state.finished:
        condition = {**condition, **ONE_OFF}
    return await delete(store, side, {**condition, **long_ago}, limit)


async def delete(store: Store, side: SideData, condition: Document, limit: int) -> list[str]:
    """Deletes the jobs that meet the condition, oldest first, with their side data. Returns their ids. A job that stops
    meeting the condition meanwhile, because a worker claims it, stays."""
    gone: list[Any] = []
    while not limit or len(gone) < limit:
        some = min(limit - len(gone), _AT_ONCE) if limit else _AT_ONCE
        async with store.reaching():
            found = await store.jobs.find(condition, {"_id": 1}, sort=[("updatedAt", 1)], limit=some).to_list()
            keys = [one["_id"] for one in found]
            if not keys:
                break
            result = await store.jobs.delete_many({"$and": [condition, {"_id": {"$in": keys}}]})
            if result.deleted_count < len(keys):
                left = await store.jobs.find({"_id": {"$in": keys}}, {"_id": 1}).to_list()
                stayed = {hashable(one["_id"]) for one in left}
                keys = [key for key in keys if hashable(key) not in stayed]
                if not result.deleted_count:
                    break  # an `_id` that is not valid UTF-8 does not match what was read
        gone += keys
        await side.forget(keys)
    return [str(key) for key in gone]


async def obliterate(store: Store, side: SideData, queue: str, force: bool) -> None:
    """Deletes every job of a queue with its side data. Raises WrongState if one is active, unless forced."""
    condition: Document = {"name": queue}
    if not force:
        async with store.reaching():
            active = await store.jobs.count_documents({"name": queue, "status": "processing"})
        if active:
            raise WrongState(f"queue {queue!r} has {active} active jobs; force=True deletes them too")
        condition["status"] = {"$ne": "processing"}
    async with store.reaching(LONG):
        await store.jobs.delete_many(condition)
    await side.forget_queue(queue)
