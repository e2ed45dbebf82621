"""Partitions of a queue: ranges of `_id`, with bounds from a sample.

Partitions follow the index of `_id`, which never changes: a scan of an index of states can miss a job that moves during
the scan. A queue that is a small part of a large collection is read by its name in one partition instead, from a
snapshot, where nothing moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobwire.backends.monque.codec import STATES
from jobwire.model import State
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.monque.mongo import Collections, Document

_SAMPLE = 2_000
_SMALL_PART = 0.05
_LARGE = 100_000
_WORTH = 1_000
"""Jobs that are worth a partition of their own."""
_NATIVE = {**{state: status for status, state in STATES.items()}, State.DELAYED: "pending"}
_FINISHED = [status for status, state in STATES.items() if state.finished]


@dataclass(frozen=True)
class Partition:
    """`_id`s from `low` on, before `high`. None leaves that side open."""

    low: Any = None
    high: Any = None
    by_name: bool = False
    """No range: all jobs of the queue, found by its name, as of one moment."""


def plan(collections: Collections, condition: Document, parts: int) -> list[Partition]:
    stages: list[Document] = [
        {"$sample": {"size": _SAMPLE}},
        {"$match": condition},
        {"$project": {"_id": 1}},
        {"$sort": {"_id": 1}},
    ]
    with collections.reaching():
        total = collections.jobs.estimated_document_count()
        found = [one["_id"] for one in collections.jobs.aggregate(stages, allowDiskUse=True)]
    share = len(found) / max(1, min(_SAMPLE, total))
    if share < _SMALL_PART and total > _LARGE and collections.streams:
        return [Partition(by_name=True)]
    parts = min(parts, max(1, int(total * share) // _WORTH), max(1, len(found) // 5))
    marks: list[Any] = []
    for number in range(1, parts):
        mark = found[len(found) * number // parts]
        if not marks or marks[-1] != mark:
            marks.append(mark)
    return [Partition(low, high) for low, high in zip([None, *marks], [*marks, None], strict=True)]


def condition_of(queues: Sequence[str], wanted: Wanted) -> Document:
    """Returns the condition for the documents that are wanted, as far as the server can check it."""
    condition: Document = {"name": of_queues(queues)}
    only_finished = False
    if wanted.states is not None:
        condition["status"] = {"$in": sorted({_NATIVE[state] for state in wanted.states if state in _NATIVE})}
        only_finished = all(state.finished for state in wanted.states)
    created = _between(wanted.created_from, wanted.created_before)
    if created:
        condition["createdAt"] = created
    finished = _between(wanted.finished_from, wanted.finished_before)
    if finished and only_finished:
        condition["updatedAt"] = finished
    elif finished:
        condition["$or"] = [{"updatedAt": finished}, {"status": {"$nin": _FINISHED}}]
    return condition


def of_queues(queues: Sequence[str]) -> Any:
    """Returns what the name of a document of these queues must match."""
    return queues[0] if len(queues) == 1 else {"$in": list(queues)}


def _between(start: datetime | None, before: datetime | None) -> Document:
    bounds: Document = {}
    if start is not None:
        # MongoDB keeps milliseconds: the whole millisecond of the bound counts.
        bounds["$gte"] = start.replace(microsecond=start.microsecond // 1000 * 1000)
    if before is not None:
        bounds["$lt"] = before
    return bounds
