"""Reads the change stream between two times of the replica set. Times bound a range, not tokens: every change has its
time, and all changes of a transaction have the same one."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from bson import ObjectId, Timestamp
from pymongo import errors as driver
from pymongo.change_stream import ChangeStream

from jobwire.errors import StoreUnavailable
from jobwire.pipeline.stores.monque.mongo import Collections, Document
from jobwire.pipeline.stores.monque.partitions import of_queues

ClusterTime = tuple[int, int]
"""A time of the replica set: seconds, and a count within the second."""

_AWAIT_MS = 200
_MOST_KEYS = 100_000
"""Keys in one look for inserts: about two megabytes of a command that may have sixteen."""
_SKEW = 60
"""Seconds by which the clock of the client that made an id may be ahead of the server's."""
_PATIENCE = 60.0
_HISTORY_LOST = frozenset({136, 280, 286})  # CappedPositionLost, ChangeStreamFatalError, ChangeStreamHistoryLost
_RELEVANT: Document = {
    "$or": [
        {"operationType": {"$in": ["insert", "replace", "delete"]}},
        {"updateDescription.updatedFields.status": {"$exists": True}},
        {"updateDescription.updatedFields.nextRunAt": {"$exists": True}},
    ]
}


class HistoryLost(Exception):
    """The server no longer has the changes from there on."""


def read(
    collections: Collections, queues: Sequence[str], start: ClusterTime, end: ClusterTime
) -> Iterator[Mapping[str, Any]]:
    """Yields changes after `start`, up to and with `end`, of documents that belong to the queues or are gone.

    A change does not contain the queue of its document, so the document is looked up, as it is now. A document that was
    inserted and deleted within the range belongs to the queue that its insert names.
    """
    ours = {"$or": [{"fullDocument.name": of_queues(queues)}, {"fullDocument": None}, {"operationType": "delete"}]}
    stages: list[Document] = [
        {"$match": ours},
        {"$project": {"fullDocument.data": 0, "updateDescription.updatedFields.data": 0}},
    ]
    yield from _between(collections, stages, start, end, "updateLookup")


def queues_of(collections: Collections, keys: Collection[Any], end: ClusterTime) -> Mapping[Any, str]:
    """Returns the queues of documents that are gone, by their keys, from the inserts up to `end` that the server still
    has. An id holds about the time of its insert. Those that are too old for the server's history are left out."""
    found: dict[Any, str] = {}
    sought = sorted((key for key in keys if isinstance(key, ObjectId)), key=lambda key: key.generation_time)
    while sought:
        some = sought[-_MOST_KEYS:]
        start = int(some[0].generation_time.timestamp()) - _SKEW
        stages: list[Document] = [
            {"$match": {"operationType": "insert", "documentKey._id": {"$in": some}}},
            {"$project": {"clusterTime": 1, "documentKey": 1, "fullDocument.name": 1}},
        ]
        try:
            for change in _between(collections, stages, (start, 0), end, None):
                found[change["documentKey"]["_id"]] = str(change["fullDocument"].get("name"))
        except HistoryLost:
            sought = some[-(len(some) // 2) :] if len(some) > 1 else []
        else:
            sought = sought[: -len(some)]
    return found


def nth(collections: Collections, start: ClusterTime, end: ClusterTime, count: int) -> ClusterTime | None:
    """Returns the time of the nth change of any queue after `start`, of the last one if there are fewer; None without
    any."""
    found: ClusterTime | None = None
    keep: list[Document] = [{"$project": {"_id": 1, "clusterTime": 1}}]
    for number, change in enumerate(_between(collections, keep, start, end, None), 1):
        found = _cluster_time(change)
        if number >= count:
            break
    return found


def _between(
    collections: Collections, stages: list[Document], start: ClusterTime, end: ClusterTime, lookup: str | None
) -> Iterator[Mapping[str, Any]]:
    relevant = {"$match": {"ns.coll": collections.address.collection, **_RELEVANT}}
    try:
        # On the database: a stream on a collection ends when the collection is dropped.
        with collections.database.watch(
            [relevant, *stages],
            full_document=lookup,
            start_at_operation_time=Timestamp(start[0], start[1] + 1),
            max_await_time_ms=_AWAIT_MS,
        ) as stream:
            yield from _until(stream, end)
    except driver.OperationFailure as error:
        if error.code in _HISTORY_LOST:
            raise HistoryLost(str(error)) from error
        raise


def _until(stream: ChangeStream[Document], end: ClusterTime) -> Iterator[Mapping[str, Any]]:
    patient_until = time.monotonic() + _PATIENCE
    while True:
        change = stream.try_next()
        if change is not None:
            if _cluster_time(change) > end:
                return
            yield change
            patient_until = time.monotonic() + _PATIENCE
        elif _reached(stream.resume_token) >= end:
            return
        elif time.monotonic() > patient_until:
            raise StoreUnavailable(f"the change stream did not reach {end[0]}.{end[1]} within {_PATIENCE:g} s")


def _cluster_time(change: Mapping[str, Any]) -> ClusterTime:
    at: Timestamp = change["clusterTime"]
    return at.time, at.inc


def _reached(token: Mapping[str, Any] | None) -> ClusterTime:
    """Returns how far a stream without news has read. Its token begins with the time: a mark of the type, seconds,
    count."""
    text = str(token["_data"]) if token else ""
    if not text.startswith("82"):
        return 0, 0
    return int(text[2:10], 16), int(text[10:18], 16)
