"""Reads the jobs of a job type and their numbers.

The spec's lists contain all types together, so an index beside them has the jobs of each type, in order. A read first
updates the index after changes by peers (milliseconds, if there are any), so its result is right without a worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.job_type import JobType
from jobwire.backends.bridgemq.upkeep.reindex import READERS_STEPS, Reindex
from jobwire.errors import InvalidOption
from jobwire.model import Job, Page, State

_STEP = 200
COUNTED = (State.WAITING, State.DELAYED, State.ACTIVE, State.COMPLETED, State.FAILED)
CONTAINERS: Mapping[State, tuple[str, str]] = {
    State.WAITING: ("type", "up"),
    State.DELAYED: ("delayed", "up"),
    State.ACTIVE: ("claims", "up"),
    State.COMPLETED: ("completed", "down"),
    State.FAILED: ("dead", "down"),
}


async def get(kind: JobType, job_ids: Sequence[str]) -> Sequence[Job | None]:
    jobs: list[Job | None] = []
    for start in range(0, len(job_ids), _STEP):
        rows: list[Any] = await kind.run("read", kind.name, *job_ids[start : start + _STEP])
        jobs += [codec.read_row(kind.name, row) for row in _rows(rows)]
    return jobs


def _rows(flat: list[Any]) -> list[list[Any]]:
    return [flat[start : start + codec.ROW] for start in range(0, len(flat), codec.ROW)]


async def jobs(
    kind: JobType, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
) -> Page:
    """Returns a page of jobs. The cursor names the last job of the page, so a job that stays is never left out."""
    if state not in CONTAINERS:
        return Page()
    if cursor is None:
        await Reindex(kind.scripts, kind.keys).run(READERS_STEPS)
    container, order = CONTAINERS[state]
    if reverse:
        order = "down" if order == "up" else "up"
    score, last = _parse(cursor)
    found: list[Job] = []
    checked = 0
    while checked < limit:
        step = min(limit - checked, _STEP)
        scores, flat = await kind.run("page", kind.name, container, order, step, score, last, skip)
        skip = 0
        for raw_score, row in zip(scores, _rows(flat), strict=True):
            score, last = raw_score.decode(), row[0].decode(errors="replace")
            job = codec.read_row(kind.name, row)
            if job is not None and job.state is state:
                found.append(job)
        checked += len(scores)
        if len(scores) < step:
            return Page(found)
    return Page(found, f"{score}/{last}")


def _parse(cursor: str | None) -> tuple[str, str]:
    if cursor is None:
        return "", ""
    score, slash, last = cursor.partition("/")
    try:
        float(score)
    except ValueError:
        slash = ""
    if not slash:
        raise InvalidOption("cursor", cursor, "must come from a page of the same state")
    return score, last


async def counts(kind: JobType) -> Mapping[State, int]:
    await Reindex(kind.scripts, kind.keys).run(READERS_STEPS)
    numbers: list[int] = await kind.run("counts", kind.name)
    return dict(zip(COUNTED, numbers, strict=True))
