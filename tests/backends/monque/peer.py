"""What the TypeScript peer does to a collection, in its own filters and updates, with the plain driver.

The peer itself is not published as a package, so its side of the protocol is played by these statements, which were
noted from it while it ran.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pymongo import ASCENDING, DESCENDING, ReturnDocument
from pymongo.collection import Collection

LOCK_TIMEOUT = timedelta(minutes=30)
LOCK_FIELDS = {"lockedAt": "", "claimedBy": "", "lastHeartbeat": ""}


def now() -> datetime:
    """With milliseconds, as BSON and JavaScript have them."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


class Peer:
    """One scheduler instance of the peer."""

    def __init__(self, jobs: Collection[dict[str, Any]], instance: str, heartbeat_interval: int = 30_000) -> None:
        self.jobs = jobs
        self.instance = instance
        self.heartbeat_interval = heartbeat_interval

    def create_indexes(self) -> None:
        """What initialise makes; it throws where an index of the same keys has another name or other options."""
        up, down = ASCENDING, DESCENDING
        live = {"uniqueKey": {"$exists": True}, "status": {"$in": ["pending", "processing"]}}
        self.jobs.create_index([("status", up), ("nextRunAt", up)], background=True)
        self.jobs.create_index(
            [("name", up), ("uniqueKey", up)], unique=True, partialFilterExpression=live, background=True
        )
        self.jobs.create_index([("name", up), ("status", up)], background=True)
        for field in ("createdAt", "updatedAt", "nextRunAt"):
            self.jobs.create_index([(field, down), ("_id", down)], background=True)
        self.jobs.create_index([("claimedBy", up), ("status", up)], background=True)
        self.jobs.create_index([("lastHeartbeat", up), ("status", up)], background=True)
        self.jobs.create_index([("name", up), ("status", up), ("nextRunAt", up), ("claimedBy", up)], background=True)
        self.jobs.create_index([("status", up), ("lockedAt", up), ("lastHeartbeat", up)], background=True)

    def fresh(self, name: str, data: Any, **more: Any) -> dict[str, Any]:
        moment = now()
        return {
            "name": name, "data": data, "status": "pending", "nextRunAt": more.pop("run_at", moment),
            "failCount": 0, "createdAt": moment, "updatedAt": moment, **more,
        }  # fmt: skip

    def enqueue(self, name: str, data: Any, **more: Any) -> dict[str, Any]:
        document = self.fresh(name, data, **more)
        if "uniqueKey" not in document:
            self.jobs.insert_one(document)
            return document
        live = {"name": name, "uniqueKey": document["uniqueKey"], "status": {"$in": ["pending", "processing"]}}
        return self.jobs.find_one_and_update(
            live, {"$setOnInsert": document}, upsert=True, return_document=ReturnDocument.AFTER
        )

    def claim(self, name: str) -> dict[str, Any] | None:
        moment = now()
        return self.jobs.find_one_and_update(
            {"name": name, "status": "pending", "nextRunAt": {"$lte": moment}},
            {
                "$set": {
                    "status": "processing", "claimedBy": self.instance, "lockedAt": moment, "lastHeartbeat": moment,
                    "heartbeatInterval": self.heartbeat_interval, "updatedAt": moment,
                }
            },
            sort=[("nextRunAt", ASCENDING)],
            return_document=ReturnDocument.AFTER,
        )  # fmt: skip

    def complete(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """None if the job is no longer this instance's."""
        return self.jobs.find_one_and_update(
            {"_id": job["_id"], "status": "processing", "claimedBy": self.instance},
            {"$set": {"status": "completed", "updatedAt": now()}, "$unset": {**LOCK_FIELDS, "failReason": ""}},
            return_document=ReturnDocument.AFTER,
        )

    def start(self) -> int:
        """Initialise: stale recovery, then the collision guard; how many jobs were recovered."""
        stale = {"status": "processing", "lockedAt": {"$lt": now() - LOCK_TIMEOUT}}
        recovered = self.jobs.update_many(
            stale, {"$set": {"status": "pending", "updatedAt": now()}, "$unset": LOCK_FIELDS}
        ).modified_count
        fresh = now() - 2 * timedelta(milliseconds=self.heartbeat_interval)
        twin = {"claimedBy": self.instance, "status": "processing", "lastHeartbeat": {"$gte": fresh}}
        if self.jobs.find_one(twin) is not None:
            raise ConnectionError(f"another instance is {self.instance}")
        return recovered
