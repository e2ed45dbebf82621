"""Jobs, numbers, logs and workers of a queue, as they are stored.

BullMQ 5 keeps waiting jobs in one of two lists (`paused` while the queue is paused, else `wait`), BullMQ 6 in `wait`
only, and jobs with a priority stand apart in `prioritized`. All three are `waiting` here; `native_state` tells which.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from jobwire.backends.bullmq import codec
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.failure import reaching
from jobwire.backends.redisio.scripts import Scripts
from jobwire.errors import InvalidOption
from jobwire.model import Job, Page, State, WorkerInfo

_STEP = 500
_PRIORITY_STEP = 2**32
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


async def get(scripts: Scripts, keys: Keys, job_ids: Sequence[str]) -> Sequence[Job | None]:
    """Jobs with their states; None for an id that the queue has no job for."""
    jobs: list[Job | None] = []
    for start in range(0, len(job_ids), _STEP):
        ids = job_ids[start : start + _STEP]
        answer: list[Any] = await scripts.run("read_jobs", [keys.base], ids)
        for job_id, place, score, fields in zip(ids, *_columns(answer, 3), strict=True):
            jobs.append(_job(keys, job_id, place.decode(), score, fields) if fields else None)
    return jobs


async def jobs(
    scripts: Scripts, keys: Keys, state: State, limit: int, cursor: str | None, *, skip: int, reverse: bool
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
        answer: list[Any] = await scripts.run("page_jobs", [keys.base], [step, skip, *after, *places])
        skip = 0
        for place, raw_id, score, fields in zip(*_columns(answer, 4), strict=True):
            after = (place.decode(), score.decode(), raw_id)
            # An entry without a hash is a trace of a job that is gone.
            if fields:
                found.append(_job(keys, raw_id.decode(errors="replace"), after[0], score, fields))
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


def _job(keys: Keys, job_id: str, place: str, score: bytes, fields: Sequence[bytes]) -> Job:
    state, native = _STATES[place]
    due = float(score) // _DUE_SCALE if place == "delayed" else None
    return codec.read_job(keys.queue, job_id, codec.raw_fields(fields), state, native, due_ms=due)[0]


async def counts(scripts: Scripts, keys: Keys) -> Mapping[State, int]:
    numbers: list[int] = await scripts.run("count", [keys.base], [])
    return dict(zip(_COUNTED, numbers, strict=True))


async def logs(store: RedisStore, keys: Keys, job_id: str) -> Sequence[str]:
    lines: list[bytes] = await store.call("LRANGE", keys.logs(job_id), 0, -1)
    return [line.decode(errors="replace") for line in lines]


async def workers(store: RedisStore, keys: Keys) -> Sequence[WorkerInfo]:
    """Workers known by the name of their blocking connection; in a cluster, those of all nodes."""
    unnamed = keys.connection_name(None)
    named = f"{unnamed}:w:"
    found: list[WorkerInfo] = []
    for connection in await _connections(store):
        name = connection.get("name", "")
        if name == unnamed or name.startswith(named):
            found.append(
                WorkerInfo(name.removeprefix(unnamed).removeprefix(":w:"), connection.get("addr", ""), connection)
            )
    return found


async def counts_by_priority(store: RedisStore, keys: Keys, priorities: Sequence[int]) -> dict[int, int]:
    """Jobs without a priority are in the lists; the score of any other begins with its priority."""
    found: list[int] = await store.calls(
        [
            ("LLEN", keys.wait),
            ("LLEN", keys.paused),
            *(
                ("ZCOUNT", keys.prioritized, priority * _PRIORITY_STEP, (priority + 1) * _PRIORITY_STEP - 1)
                for priority in priorities
            ),
        ]
    )
    counts = dict(zip(priorities, found[2:], strict=True))
    if 0 in counts:
        counts[0] = found[0] + found[1]
    return counts


async def _connections(store: RedisStore) -> list[dict[str, str]]:
    """CLIENT LIST of every node that holds keys."""
    with reaching(store.where):
        async with store.slots, asyncio.timeout(store.patience):
            client = store.client
            if not store.cluster:
                return list(await client.client_list())
            answers: dict[str, list[dict[str, str]]] = await client.client_list(target_nodes=client.PRIMARIES)
            return [connection for answer in answers.values() for connection in answer]
