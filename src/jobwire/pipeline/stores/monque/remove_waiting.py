"""Removes jobs that wait, for a move that has verified their copies."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from jobwire.backends.monque.codec import key_of
from jobwire.boundary import Acted
from jobwire.pipeline.stores.monque.mongo import Collections, Document

_TOGETHER = 1_000
_THREADS = 2
"""The server takes 30 µs to delete a job from all of its indexes, in one thread for each command."""
_HINT = "_id_"
"""Left to itself, the server may read all jobs of the state for every command: 16 µs a job for 20,000 jobs instead of
2.5 µs, and more for more jobs."""


class _Removed(NamedTuple):
    gone: set[Any]
    left: set[Any]


def remove_waiting(collections: Collections, queue: str, ids: Sequence[str]) -> list[Acted]:
    """A job that another client deletes at the same time counts as deleted here."""
    keys = [key_of(one) for one in ids]
    portions = [keys[start : start + _TOGETHER] for start in range(0, len(keys), _TOGETHER)]
    with collections.reaching(), ThreadPoolExecutor(_THREADS) as threads:
        removed = list(threads.map(partial(_remove, collections, queue), portions))
    gone = {key for one in removed for key in one.gone}
    left = {key for one in removed for key in one.left}
    return [Acted.DONE if key in gone else Acted.WRONG_STATE if key in left else Acted.NOT_FOUND for key in keys]


def _remove(collections: Collections, queue: str, keys: Sequence[Any]) -> _Removed:
    own: Document = {"_id": {"$in": keys}, "name": queue}
    pending = {**own, "status": "pending"}
    waiting = _keys(collections, pending)
    deleted = collections.jobs.delete_many(pending, hint=_HINT).deleted_count if waiting else 0
    whole = deleted == len(waiting) == len(set(keys))
    left = set[Any]() if whole else _keys(collections, own)
    gone = waiting - left
    some = list(gone)
    collections.side.delete_many({"$or": [{"_id": {"$in": some}}, {"job": {"$in": some}}]})
    return _Removed(gone, left)


def _keys(collections: Collections, condition: Document) -> set[Any]:
    return {found["_id"] for found in collections.jobs.find(condition, {"_id": 1}).hint(_HINT)}
