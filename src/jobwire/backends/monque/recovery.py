"""Taking jobs back from the dead, while workers run and not only when one starts.

A claim of ours carries the end of its lease and is renewed all the time, so it is dead when the lease is over. A claim
of the peer carries nothing of the kind, and the peer never renews `lockedAt`: it is dead when `lockedAt` is older than
the lock timeout (30 min, the peer's own default) and its heart has not beaten for two of its intervals. A job that the
peer has taken over from us may still hold our old lease; that is why the lease must be of the one who has the job.
"""

from __future__ import annotations

import secrets
from typing import Any

from pymongo import UpdateOne

from jobwire.backends.monque.clock import moment, now_ms
from jobwire.backends.monque.codec import PRIVATE, STATES, fault_of, stalls_of
from jobwire.backends.monque.settling import RELEASE
from jobwire.backends.monque.store import Document, Store
from jobwire.counted import counted

_PEERS_BEAT_MS = 30_000
_AT_ONCE = 500
_FEW = 5

_OURS = {"$eq": ["$claimedBy", f"${PRIVATE}.by"]}


def stale(queue: str, now: int, lock_timeout_ms: int) -> Document:
    """The filter of jobs whose worker is dead."""
    beat = {"$cond": [{"$isNumber": "$heartbeatInterval"}, "$heartbeatInterval", _PEERS_BEAT_MS]}
    last = {"$cond": [{"$eq": [{"$type": "$lastHeartbeat"}, "date"]}, "$lastHeartbeat", moment(0)]}
    silent = {"$lt": [last, {"$subtract": [moment(now), {"$multiply": [2, beat]}]}]}
    return {
        "name": queue,
        "status": "processing",
        "$or": [
            {f"{PRIVATE}.until": {"$lt": moment(now)}, "$expr": _OURS},
            {
                "lockedAt": {"$lt": moment(now - lock_timeout_ms)},
                "$expr": {"$and": [silent, {"$not": [_OURS]}]},
            },
        ],
    }


async def recover(store: Store, queue: str, lock_timeout_ms: int) -> list[str]:
    """Put stale jobs back into the line, due as they were, so before those that came later; their ids."""
    now = now_ms()
    condition = stale(queue, now, lock_timeout_ms)
    with store.reaching():
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


async def set_aside(store: Store, queue: str) -> str:
    """Fail, with the reason, jobs that no worker would ever find because of what they are; a note for the log.

    A status that nobody here knows is only reported: a newer peer may know it.
    """
    now = now_ms()
    undated: dict[str, Any] = {"$not": {"$type": "date"}}
    with store.reaching():
        odd = await store.jobs.find(
            {
                "name": queue,
                "$or": [{"status": "pending", "nextRunAt": undated}, {"status": {"$nin": list(STATES)}}],
            },
            limit=_AT_ONCE,
        ).to_list()
        notes: list[str] = []
        for one in odd:
            reason = fault_of(one) or "malformed job"
            notes.append(f"{one['_id']}: {reason}")
            if one.get("status") == "pending":
                await store.jobs.update_one(
                    {"_id": one["_id"], "status": "pending", "nextRunAt": undated},
                    {"$set": {"status": "failed", "failReason": reason, "updatedAt": moment(now)}},
                )
    if not notes:
        return ""
    return f"{counted(len(notes), 'malformed job')}: " + "; ".join(notes[:_FEW]) + ("; …" if len(notes) > _FEW else "")
