"""The indexes of a Monque collection, with the keys, options and default names that the peer uses.

They must be exactly the same. The peer's scheduler does not start if an index with the same keys has another name or
other options.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pymongo import ASCENDING as UP
from pymongo import DESCENDING as DOWN
from pymongo import IndexModel
from pymongo import errors as driver

LIVE = ("pending", "processing")
CLAIM_INDEX = "name_1_status_1_nextRunAt_1_claimedBy_1"
STATE_INDEX = "name_1_status_1"
UNIQUE_INDEX = "name_1_uniqueKey_1"
NO_SUCH_INDEX = 2
Answer = TypeVar("Answer")


def job_indexes() -> list[IndexModel]:
    """Returns the indexes of the jobs."""
    live: dict[str, Any] = {"uniqueKey": {"$exists": True}, "status": {"$in": list(LIVE)}}
    return [
        IndexModel([("status", UP), ("nextRunAt", UP)]),
        IndexModel([("name", UP), ("uniqueKey", UP)], unique=True, partialFilterExpression=live),
        IndexModel([("name", UP), ("status", UP)]),
        IndexModel([("createdAt", DOWN), ("_id", DOWN)]),
        IndexModel([("updatedAt", DOWN), ("_id", DOWN)]),
        IndexModel([("nextRunAt", DOWN), ("_id", DOWN)]),
        IndexModel([("claimedBy", UP), ("status", UP)]),
        IndexModel([("lastHeartbeat", UP), ("status", UP)]),
        IndexModel([("name", UP), ("status", UP), ("nextRunAt", UP), ("claimedBy", UP)]),
        IndexModel([("status", UP), ("lockedAt", UP), ("lastHeartbeat", UP)]),
    ]


def retention_index() -> IndexModel:
    """Returns the index for retention. Like the peer, jobwire makes it only where retention is configured."""
    finished: dict[str, Any] = {"status": {"$in": ["completed", "failed"]}, "updatedAt": {"$exists": True}}
    return IndexModel([("status", UP), ("updatedAt", UP)], partialFilterExpression=finished)


def side_indexes() -> list[IndexModel]:
    """Returns the indexes of the side data: by job for the lines of its log, and by queue."""
    logs: dict[str, Any] = {"job": {"$exists": True}}
    return [IndexModel([("job", UP), ("_id", UP)], partialFilterExpression=logs), IndexModel([("name", UP)])]


async def hinted(read: Callable[[str | None], Awaitable[Answer]], hint: str) -> Answer:
    """Returns the answer to a read by one index, or without it if the collection has indexes of its owner's choice."""
    try:
        return await read(hint)
    except driver.OperationFailure as error:
        if error.code != NO_SUCH_INDEX:
            raise
        return await read(None)
