"""Recovers jobs whose worker has died. Runs continuously, not only at start-up as in the peer.

A claim of ours has the end of its lease, which is extended while the worker lives, so the job is stalled when the lease
has expired. A claim of the peer has no lease, and the peer never renews `lockedAt`. Its job is stalled when `lockedAt`
is older than the lock timeout (30 min, the peer's own default) and no heartbeat came for two of its intervals. A job
that the peer has claimed after us may still have our old lease. So a lease counts only if it belongs to `claimedBy`.
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
"""No peer has a longer interval. A larger stored value would make the sum below overflow, and the query fail."""
_AT_ONCE = 500


def _is(field: str, kind: str) -> Document:
    return {"$eq": [{"$type": f"${field}"}, kind]}


# To the server, two missing fields are equal. So the filter also asks that the lease exists.
_OURS: Document = {
    "$and": [_is(f"{PRIVATE}.until", "date"), _is("claimedBy", "string"), {"$eq": ["$claimedBy", f"${PRIVATE}.by"]}]
}


def stale(queue: str, lock_timeout_ms: int) -> Document:
    """Returns the filter of stalled jobs, by the server's clock. It works whatever the documents contain."""
    usual = {"$and": [{"$isNumber": "$heartbeatInterval"}, {"$gte": ["$heartbeatInterval", 0]}]}  # NaN is below 0
    beat = {"$cond": [usual, {"$min": ["$heartbeatInterval", _LONGEST_BEAT_MS]}, _PEERS_BEAT_MS]}
    last = {"$cond": [_is("lastHeartbeat", "date"), "$lastHeartbeat", moment(0)]}
    silent = {"$lt": [last, {"$subtract": ["$$NOW", {"$multiply": [2, beat]}]}]}
    # Every claim of a peer sets `lockedAt`. A job without it was written by hand, and its last change counts instead.
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
    """Makes stalled jobs pending again, with their old due time, so they run before later ones. Returns their ids."""
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
        if result.modified_count < len(keys):  # another worker recovered some of them
            mine = {"_id": {"$in": keys}, f"{PRIVATE}.recovery": mark}
            keys = [one["_id"] for one in await store.jobs.find(mine, {"_id": 1}).to_list()]
    return [str(key) for key in keys]


def _back(document: Document, now: int, mark: str) -> Document:
    # The peer does not count recoveries, so a job that kills its worker would do that without end.
    ours = {PRIVATE: {"stalls": stalls_of(document) + 1, "recovery": mark}}
    return {"$set": {"status": "pending", "updatedAt": moment(now), **ours}, "$unset": RELEASE}


async def refuse_twin(store: Store, worker: str, beat_ms: int) -> None:
    """Raises StoreRefused if another live instance has this id: each would settle the other's jobs."""
    since = moment(store.clock.now_ms() - 2 * beat_ms)
    twin = {"claimedBy": worker, "status": "processing", "lastHeartbeat": {"$gte": since}}
    async with store.reaching():
        found = await store.jobs.find_one(twin, {"_id": 1})
    if found is not None:
        raise StoreRefused(f"the instance id {worker!r} is in use: a live instance runs job {found['_id']} under it")
