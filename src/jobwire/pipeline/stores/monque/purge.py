"""Removes finished jobs that are archived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import DeleteOne

from jobwire.backends.monque.codec import STATES, key_of
from jobwire.pipeline.stores.boundary import Purged, Stamp
from jobwire.pipeline.stores.monque.mongo import Collections
from jobwire.pipeline.stores.monque.rows import fingerprint

_TOGETHER = 1_000
_STORED: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)


def purge(collections: Collections, queue: str, stamps: Sequence[Stamp]) -> Purged:
    removed: set[str] = set()
    for start in range(0, len(stamps), _TOGETHER):
        with collections.reaching():
            removed |= _purge(collections, queue, stamps[start : start + _TOGETHER])
    return Purged(
        tuple(stamp.id for stamp in stamps if stamp.id in removed),
        tuple(stamp.id for stamp in stamps if stamp.id not in removed),
    )


def _purge(collections: Collections, queue: str, stamps: Sequence[Stamp]) -> set[str]:
    """Reads each job again, and deletes it only if it is still the document whose fingerprint matched: the server can't
    compute fingerprints."""
    expected = {key_of(stamp.id): stamp for stamp in stamps}
    condition = {"_id": {"$in": list(expected)}, "name": queue}
    unchanged: dict[Any, RawBSONDocument] = {}
    for document in collections.jobs.with_options(codec_options=_STORED).find(condition):
        stamp = expected[document["_id"]]
        finished = document["status"] == stamp.state and STATES[stamp.state].finished
        if finished and fingerprint(bytes(document.raw)) == stamp.fingerprint:
            unchanged[document["_id"]] = document
    if not unchanged:
        return set()
    requests = [
        DeleteOne({"_id": key, "name": queue, "$expr": {"$eq": ["$$ROOT", {"$literal": document}]}})
        for key, document in unchanged.items()
    ]
    result = collections.jobs.bulk_write(requests, ordered=False)
    gone = set(unchanged)
    if result.deleted_count < len(gone):
        gone -= {one["_id"] for one in collections.jobs.find({"_id": {"$in": list(gone)}}, {"_id": 1})}
    keys = list(gone)
    collections.side.delete_many({"$or": [{"_id": {"$in": keys}}, {"job": {"$in": keys}}]})
    return {expected[key].id for key in gone}
