"""Jobs and numbers of a job type.

The spec's lists hold all types together, so a type's own are kept beside them, in order. Readers first let the index
take notice of what peers did (milliseconds, if there is anything), so what they see is right with no worker running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.job_type import JobType
from jobwire.backends.bridgemq.upkeep.reindex import READERS_STEPS, Healing
from jobwire.errors import InvalidOption
from jobwire.model import Job, Page, State

_STEP = 200
_COUNTED = (State.WAITING, State.DELAYED, State.ACTIVE, State.COMPLETED, State.FAILED)
PLACES: Mapping[State, tuple[str, str]] = {
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
    """A page of jobs. The cursor names the job that the page ended with, so a job that stays is never left out."""
    if state not in PLACES:
        return Page()
    if cursor is None:
        await Healing(kind.scripts, kind.keys).go_on(READERS_STEPS)
    place, order = PLACES[state]
    if reverse:
        order = "down" if order == "up" else "up"
    score, last = _parse(cursor)
    found: list[Job] = []
    looked_at = 0
    while looked_at < limit:
        step = min(limit - looked_at, _STEP)
        scores, flat = await kind.run("page", kind.name, place, order, step, score, last, skip)
        skip = 0
        for raw_score, row in zip(scores, _rows(flat), strict=True):
            score, last = raw_score.decode(), row[0].decode(errors="replace")
            job = codec.read_row(kind.name, row)
            if job is not None and job.state is state:
                found.append(job)
        looked_at += len(scores)
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
    await Healing(kind.scripts, kind.keys).go_on(READERS_STEPS)
    numbers: list[int] = await kind.run("counts", kind.name)
    return dict(zip(_COUNTED, numbers, strict=True))
