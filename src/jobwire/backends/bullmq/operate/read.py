"""Jobs, numbers, logs and workers of a queue, as they are stored.

BullMQ 5 keeps waiting jobs in one of two lists (`paused` while the queue is paused, else `wait`), BullMQ 6 in `wait`
only, and jobs with a priority stand apart in `prioritized`. All three are `waiting` here; `native_state` tells which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobwire.backends.bullmq import codec
from jobwire.backends.bullmq.connection import Server
from jobwire.errors import InvalidOption
from jobwire.model import Job, Page, State

_STEP = 500
_DUE_SCALE = 4096
_STATES: Mapping[str, tuple[State, str]] = {
    "wait": (State.WAITING, "waiting"),
    "paused": (State.WAITING, "paused"),
    "prioritized": (State.WAITING, "prioritized"),
    "delayed": (State.DELAYED, "delayed"),
    "active": (State.ACTIVE, "active"),
    "completed": (State.COMPLETED, "completed"),
    "failed": (State.FAILED, "failed"),
    "waiting-children": (State.WAITING_CHILDREN, "waiting-children"),
    # Between two states for an instant, or left behind by a broken client.
    "": (State.WAITING, "unknown"),
}
_PLACES: Mapping[State, Sequence[str]] = {
    State.WAITING: ("paused", "list", "wait", "list", "prioritized", "up"),
    State.DELAYED: ("delayed", "up"),
    State.ACTIVE: ("active", "list"),
    State.COMPLETED: ("completed", "down"),
    State.FAILED: ("failed", "down"),
    State.WAITING_CHILDREN: ("waiting-children", "up"),
}
_OPPOSITE = {"list": "list backward", "up": "down", "down": "up"}
_COUNTED = (
    State.WAITING,
    State.DELAYED,
    State.ACTIVE,
    State.COMPLETED,
    State.FAILED,
    State.WAITING_CHILDREN,
)


async def get(server: Server, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]:
    """Jobs with their states; None for an id that the queue has no job for."""
    jobs: list[Job | None] = []
    for start in range(0, len(job_ids), _STEP):
        ids = job_ids[start : start + _STEP]
        answer: list[Any] = await server.run("read_jobs", queue, ids)
        for job_id, place, score, fields in zip(ids, *_columns(answer, 3), strict=True):
            jobs.append(_job(queue, job_id, place.decode(), score, fields) if fields else None)
    return jobs


async def jobs(
    server: Server, queue: str, state: State, limit: int, cursor: str | None, *, skip: int, reverse: bool
) -> Page:
    """A page of jobs. The cursor names the job that the page ended with, so jobs that come and go do not shift the
    next page: one that stays in its state is never left out, though it may be seen twice. What is skipped are entries
    of the lists and sets, which the server passes over by their position."""
    places = _PLACES.get(state)
    if places is None:
        return Page()
    if reverse:
        places = _backward(places)
    after = _parse_cursor(cursor, places)
    found: list[Job] = []
    looked_at = 0
    while looked_at < limit:
        step = min(limit - looked_at, _STEP)
        answer: list[Any] = await server.run("page_jobs", queue, [step, skip, *after, *places])
        skip = 0
        for place, raw_id, score, fields in zip(*_columns(answer, 4), strict=True):
            after = (place.decode(), score.decode(), raw_id)
            # An entry without a hash is a trace of a job that is gone.
            if fields:
                found.append(_job(queue, raw_id.decode(errors="replace"), after[0], score, fields))
        looked_at += len(answer) // 4
        if len(answer) // 4 < step:
            return Page(found)
    place, score, last = after
    return Page(found, f"{place}/{score}/{last.decode(errors='surrogateescape')}")


def _backward(places: Sequence[str]) -> Sequence[str]:
    """The same places from the last to the first, each in the opposite order."""
    return [
        word for place, order in zip(places[-2::-2], places[::-2], strict=True) for word in (place, _OPPOSITE[order])
    ]


def _parse_cursor(cursor: str | None, places: Sequence[str]) -> tuple[str, str, bytes]:
    if cursor is None:
        return "", "", b""
    place, score, job_id = [*cursor.split("/", 2), "", ""][:3]
    if place not in places[::2]:
        raise InvalidOption("cursor", cursor, "must come from a page of the same state")
    return place, score, job_id.encode(errors="surrogateescape")


def _columns(answer: list[Any], width: int) -> list[list[Any]]:
    return [answer[column::width] for column in range(width)]


def _job(queue: str, job_id: str, place: str, score: bytes, fields: Sequence[bytes]) -> Job:
    state, native = _STATES[place]
    due = float(score) // _DUE_SCALE if place == "delayed" else None
    return codec.read_job(queue, job_id, codec.raw_fields(fields), state, native, due_ms=due)[0]


async def counts(server: Server, queue: str) -> Mapping[State, int]:
    numbers: list[int] = await server.run("count", queue, [])
    return dict(zip(_COUNTED, numbers, strict=True))
