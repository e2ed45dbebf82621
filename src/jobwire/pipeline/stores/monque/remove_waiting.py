"""Removes jobs that wait, for a move that has verified their copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobwire.backends.monque.codec import key_of
from jobwire.boundary import Acted
from jobwire.pipeline.stores.monque.mongo import Collections, Document

_TOGETHER = 1_000


def remove_waiting(collections: Collections, queue: str, ids: Sequence[str]) -> list[Acted]:
    """A job that another client deletes at the same time counts as deleted here."""
    keys = [key_of(one) for one in ids]
    gone: set[Any] = set()
    left: set[Any] = set()
    with collections.reaching():
        for start in range(0, len(keys), _TOGETHER):
            own: Document = {"_id": {"$in": keys[start : start + _TOGETHER]}, "name": queue}
            pending = {**own, "status": "pending"}
            waiting = _keys(collections, pending)
            deleted = collections.jobs.delete_many(pending).deleted_count if waiting else 0
            whole = deleted == len(waiting) == len(set(own["_id"]["$in"]))
            stay = set[Any]() if whole else _keys(collections, own)
            left |= stay
            some = list(waiting - stay)
            collections.side.delete_many({"$or": [{"_id": {"$in": some}}, {"job": {"$in": some}}]})
            gone.update(some)
    return [Acted.DONE if key in gone else Acted.WRONG_STATE if key in left else Acted.NOT_FOUND for key in keys]


def _keys(collections: Collections, condition: Document) -> set[Any]:
    return {found["_id"] for found in collections.jobs.find(condition, {"_id": 1})}
