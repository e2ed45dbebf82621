"""Taking jobs back from the dead, while workers run and not only when one starts.

A claim of ours carries the end of its lease and is renewed all the time, so it is dead when the lease is over. A claim
of the peer carries nothing of the kind, and the peer never renews `lockedAt`: it is dead when `lockedAt` is older than
the lock timeout (30 min, the peer's own default) and its heart has not beaten for two of its intervals. A job that the
peer has taken over from us may still hold our old lease; that is why the lease must be of the one who has the job.
"""

from __future__ import annotations

import secrets

from pymongo import UpdateOne

from jobwire.backends.monque.codec import PRIVATE, stalls_of
from jobwire.backends.monque.connection.clock import moment
from jobwire.backends.monque.connection.store import Document, Store
from jobwire.backends.monque.work.settle import RELEASE
from jobwire.errors import StoreRefused

_PEERS_BEAT_MS = 30_000
_LONGEST_BEAT_MS = 3_600_000
"""No peer's heart beats slower; a stored interval beyond it would make the sum below overflow, for the whole queue."""
_AT_ONCE = 500


def _is(field: str, kind: str) -> Document:
    return {"$eq": [{"$type": f"${field}"}, kind]}


# Two fields that are both missing are equal to the server, so that the lease is there must be asked for.
_OURS: Document = {
    "$and": [_is(f"{PRIVATE}.until", "date"), _is("claimedBy", "string"), {"$eq": ["$claimedBy", f"${PRIVATE}.by"]}]
}


def stale(queue: str, lock_timeout_ms: int) -> Document:
    """The filter of jobs whose worker is dead, by the server's clock. Whatever is stored, none of it makes it fail."""
    usual = {"$and": [{"$isNumber": "$heartbeatInterval"}, {"$gte": ["$heartbeatInterval", 0]}]}  # NaN is below 0
    beat = {"$cond": [usual, {"$min": ["$heartbeatInterval", _LONGEST_BEAT_MS]}, _PEERS_BEAT_MS]}
    last = {"$cond": [_is("lastHeartbeat", "date"), "$lastHeartbeat", moment(0)]}
    silent = {"$lt": [last, {"$subtract": ["$$NOW", {"$multiply": [2, beat]}]}]}
    # No peer claims without a date; a job that has none was made by hand, and its last change is the nearest to it.
    changed = {"$cond": [_is("updatedAt", "date"), "$updatedAt", moment(0)]}
    locked = {"$cond": [_is("lockedAt", "date"), "$lockedAt", changed]}
    old = {"$lt": [locked, {"$subtract": ["$$NOW", lock_timeout_ms]}]}
    over = {"$lt": [f"${PRIVATE}.until", "$$NOW"]}
    return {
        "name": queue,
        "status": "processing",
        "$expr": {"$cond": [_OURS, over, {"$and": [old, silent]}]},
    }


async def recover(store: Store, queue: str, lock_timeout_ms: int) -> list[str]:
    """Put stale jobs back into the line, due as they were, so before those that came later; their ids."""
    now = store.clock.now_ms()
    condition = stale(queue, lock_timeout_ms)
    async with store.reaching():
        found = await store.jobs.find(condition, {PRIVATE: 1}, limit=_AT_ONCE).to_list()
        if not found:
            return []
        mark = secrets.token_hex(8)
        requests = [UpdateOne({**condition, "_id": one["_id"]}, _back(one, now, mark)) for one in found]
        result = await store.jobs.bulk_write(requests, ordered=False)
        keys = [one["_id"] for one in found]
        if result.modified_count < len(keys):  # another worker was at it, too
            mine = {"_id": {"$in": keys}, f"{PRIVATE}.recovery": mark}
            keys = [one["_id"] for one in await store.jobs.find(mine, {"_id": 1}).to_list()]
    return [str(key) for key in keys]


def _back(document: Document, now: int, mark: str) -> Document:
    # The peer counts no recoveries, so a job that kills its worker would do so for ever.
    ours = {PRIVATE: {"stalls": stalls_of(document) + 1, "recovery": mark}}
    return {"$set": {"status": "pending", "updatedAt": moment(now), **ours}, "$unset": RELEASE}


async def refuse_twin(store: Store, worker: str, beat_ms: int) -> None:
    """Raise StoreRefused if a living instance has this id: each would finish the other's jobs."""
    since = moment(store.clock.now_ms() - 2 * beat_ms)
    twin = {"claimedBy": worker, "status": "processing", "lastHeartbeat": {"$gte": since}}
    async with store.reaching():
        found = await store.jobs.find_one(twin, {"_id": 1})
    if found is not None:
        raise StoreRefused(f"the instance id {worker!r} is in use: job {found['_id']} has a fresh heartbeat of its own")
