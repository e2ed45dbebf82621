"""Stores finished jobs as documents of Monque, with jobwire's side data: restored, or moved from another store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pyarrow as pa
from bson import ObjectId, json_util
from bson.json_util import JSONOptions
from pymongo import UpdateOne
from pymongo import errors as driver

from jobwire import codec as json_codec
from jobwire.backends.monque import payload
from jobwire.backends.monque.connection.clock import ms_of
from jobwire.backends.monque.connection.errors import DUPLICATE_KEY
from jobwire.backends.monque.connection.side_data import Run
from jobwire.backends.monque.rules import to_bson
from jobwire.errors import InvalidOption
from jobwire.model import State
from jobwire.pipeline.stores.monque.dialect import DIALECT
from jobwire.pipeline.stores.monque.mongo import Collections, Document

_FINISHED = frozenset(state.value for state in State if state.finished)
_OURS = "failCount"
"""A field that the `raw` of every job from Monque has."""
_EXTENDED = JSONOptions(tz_aware=True, tzinfo=UTC)


def put_finished(collections: Collections, queue: str, jobs: pa.RecordBatch) -> int:
    rows = cast("list[dict[str, Any]]", jobs.to_pylist())
    made = {document["_id"]: (document, row) for document, row in ((_document(queue, row), row) for row in rows)}
    with collections.reaching():
        there = {one["_id"] for one in collections.jobs.find({"_id": {"$in": list(made)}}, {"_id": 1})}
        new = {key: pair for key, pair in made.items() if key not in there}
        if not new:
            return 0
        # Side data first, as a worker writes it: a job that was stored without its result would never get it.
        notes = [request for document, row in new.values() for request in _notes(document, row)]
        if notes:
            collections.side.bulk_write(notes, ordered=False)
        return _insert(collections, [document for document, _ in new.values()])


def _insert(collections: Collections, documents: list[Document]) -> int:
    try:
        return len(collections.jobs.insert_many(documents, ordered=False).inserted_ids)
    except driver.BulkWriteError as error:
        faults: list[dict[str, Any]] = error.details.get("writeErrors", [])
        others = [fault for fault in faults if fault.get("code") != DUPLICATE_KEY]
        if others or error.details.get("writeConcernErrors"):
            raise
        return int(error.details["nInserted"])


def _document(queue: str, row: Mapping[str, Any]) -> Document:
    if row["state"] not in _FINISHED or row["malformed"] is not None:
        rule = f"must be finished and sound (job {row['id']}: {row['malformed'] or row['state']})"
        raise InvalidOption("state", row["state"], rule)
    raw: Document = json_util.loads(row["raw"], json_options=_EXTENDED) if row["raw"] else {}
    own = _OURS in raw
    created = row["created_at"] or row["finished_at"] or datetime.now(UTC)
    made = row["attempts_made"] or 0
    document: Document = {
        "_id": ObjectId(DIALECT.native_id(row["id"])),
        "name": queue,
        "data": to_bson(json_codec.loads(row["payload"].encode())) if row["payload"] is not None else None,
        "status": row["state"],
        "nextRunAt": row["run_at"] or created,
        "failCount": max(made - 1, 0) if row["state"] == State.COMPLETED else made,
        "createdAt": created,
        "updatedAt": row["finished_at"] or created,
    }
    if row["unique_key"] is not None:
        document["uniqueKey"] = row["unique_key"]
    if row["error"] is not None and row["state"] != State.COMPLETED:
        document["failReason"] = row["error"]
    if own:
        document |= raw
    payload.check_size(document, len(row["payload"] or ""))
    return document


def _notes(document: Document, row: Mapping[str, Any]) -> list[UpdateOne]:
    key, name, at = document["_id"], document["name"], ms_of(document["updatedAt"])
    requests: list[UpdateOne] = []
    if at is not None and (row["result"] is not None or row["stacktrace"] or row["worker"] or row["started_at"]):
        started, worker, stack = row["started_at"], row["worker"] or "", row["stacktrace"] or ""
        end = Run(key, name, at, "restored", started, worker, row["result"], stack)
        requests.append(end.request)
    if row["progress"] is not None:
        change = {"$set": {"name": name, "progress": row["progress"]}}
        requests.append(UpdateOne({"_id": key}, change, upsert=True))
    return requests
