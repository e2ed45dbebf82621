"""Reads the jobs of a queue and their numbers.

BullMQ 5 keeps waiting jobs in one of two lists (`paused` while the queue is paused, otherwise `wait`), BullMQ 6 in
`wait` only. Jobs with a priority are in the set `prioritized`. The state is `waiting` for all three, and `native_state`
names the container.
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
    # In no container: between two states for an instant, or left behind by a broken client.
    "": (State.WAITING, "unknown"),
}
_CONTAINERS: Mapping[State, Sequence[str]] = {
    State.WAITING: ("paused", "list", "wait", "list", "prioritized", "up"),
    State.DELAYED: ("delayed", "up"),
    State.ACTIVE: ("active", "list"),
    State.COMPLETED: ("completed", "down"),
    State.FAILED: ("failed", "down"),
    State.WAITING_CHILDREN: ("waiting-children", "up"),
}
_OPPOSITE = {"list": "list backward", "up": "down", "down": "up"}
COUNTED = (
    State.WAITING,
    State.DELAYED,
    State.ACTIVE,
    State.COMPLETED,
    State.FAILED,
    State.WAITING_CHILDREN,
)


async def get(server: Server, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]:
    """Returns the jobs of these ids, None where the queue has no such job."""
    jobs: list[Job | None] = []
    for start in range(0, len(job_ids), _STEP):
        ids = job_ids[start : start + _STEP]
        answer: list[Any] = await server.run("read_jobs", queue, ids)
        for job_id, container, score, fields in zip(ids, *_columns(answer, 3), strict=True):
            jobs.append(_job(queue, job_id, container.decode(), score, fields) if fields else None)
    return jobs


async def jobs(
    server: Server, queue: str, state: State, limit: int, cursor: str | None, *, skip: int, reverse: bool
) -> Page:
    """Returns a page of jobs. The cursor names the last job of the page, so jobs that come and go do not shift the next
    page: a job that stays in its state is never left out, though it may be seen twice. `skip` counts entries of the
    containers, including those whose job is gone."""
    containers = _CONTAINERS.get(state)
    if containers is None:
        return Page()
    if reverse:
        containers = _backward(containers)
    after = _parse_cursor(cursor, containers)
    found: list[Job] = []
    checked = 0
    while checked < limit:
        step = min(limit - checked, _STEP)
        answer: list[Any] = await server.run("page_jobs", queue, [step, skip, *after, *containers])
        skip = 0
        for container, raw_id, score, fields in zip(*_columns(answer, 4), strict=True):
            after = (container.decode(), score.decode(), raw_id)
            # The job of an entry without a hash is gone.
            if fields:
                found.append(_job(queue, raw_id.decode(errors="replace"), after[0], score, fields))
        checked += len(answer) // 4
        if len(answer) // 4 < step:
            return Page(found)
    container, score, last = after
    return Page(found, f"{container}/{score}/{last.decode(errors='surrogateescape')}")


def _backward(containers: Sequence[str]) -> Sequence[str]:
    """Returns the same containers from the last to the first, each in the opposite order."""
    return [
        word
        for container, order in zip(containers[-2::-2], containers[::-2], strict=True)
        for word in (container, _OPPOSITE[order])
    ]


def _parse_cursor(cursor: str | None, containers: Sequence[str]) -> tuple[str, str, bytes]:
    if cursor is None:
        return "", "", b""
    container, score, job_id = [*cursor.split("/", 2), "", ""][:3]
    if container not in containers[::2]:
        raise InvalidOption("cursor", cursor, "must come from a page of the same state")
    return container, score, job_id.encode(errors="surrogateescape")


def _columns(answer: list[Any], width: int) -> list[list[Any]]:
    return [answer[column::width] for column in range(width)]


def _job(queue: str, job_id: str, container: str, score: bytes, fields: Sequence[bytes]) -> Job:
    state, native = _STATES[container]
    due = float(score) // _DUE_SCALE if container == "delayed" else None
    return codec.read_job(queue, job_id, codec.raw_fields(fields), state, native, due_ms=due)[0]


async def counts(server: Server, queue: str) -> Mapping[State, int]:
    numbers: list[int] = await server.run("count", queue, [])
    return dict(zip(COUNTED, numbers, strict=True))
