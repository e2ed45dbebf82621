"""Operators' actions on jobs and on a whole job type. Deletions of many go in steps, each some milliseconds long."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.job_type import JobType
from jobwire.backends.bridgemq.native.routing import route_of
from jobwire.backends.bridgemq.operate import read
from jobwire.backends.bridgemq.operate.pause import stop_claims
from jobwire.backends.bridgemq.produce.add import route_arguments
from jobwire.backends.redisio.answers import ACTED
from jobwire.backends.redisio.scripts import Argument
from jobwire.boundary import Acted
from jobwire.errors import InvalidOption, WrongState
from jobwire.model import State

STEP = 500
_REMOVE_STEP = 50
_BY_FINISH = {State.COMPLETED: "completed", State.FAILED: "dead"}
_BY_CREATION = (State.WAITING, State.DELAYED)


async def retry(kind: JobType, job_ids: Sequence[str]) -> Sequence[Acted]:
    """Makes finished jobs ready again, including those of the dead letter list, and resets their attempts."""
    found = await read.get(kind, job_ids)
    raws = await _raw(kind, job_ids)
    acted: list[Acted] = []
    for job_id, job, raw in zip(job_ids, found, raws, strict=True):
        if job is None:
            acted.append(Acted.NOT_FOUND)
            continue
        if "type" not in job.raw:
            acted.append(Acted.WRONG_STATE)  # its data can't be read, so it can't be run
            continue
        document = dict(job.raw)
        front = "f" if job.priority >= codec.FRONT_FROM else ""
        reset = codec.rewritten({**document, "attempts": 0})
        args: list[Argument] = [kind.name, "retry", job_id, raw, reset, *route_arguments(route_of(document)), front]
        [answer] = await kind.run("act", *args)
        acted.append(ACTED[answer])
    return acted


async def _raw(kind: JobType, job_ids: Sequence[str]) -> list[bytes]:
    rows: list[bytes] = await kind.run("read", kind.name, *job_ids)
    return rows[3 :: codec.ROW]


async def promote(kind: JobType, job_ids: Sequence[str]) -> Sequence[Acted]:
    return await _act(kind, "promote", job_ids)


async def remove(kind: JobType, job_ids: Sequence[str]) -> Sequence[Acted]:
    return await _act(kind, "remove", job_ids)


async def _act(kind: JobType, action: str, job_ids: Sequence[str]) -> Sequence[Acted]:
    acted: list[Acted] = []
    for start in range(0, len(job_ids), _REMOVE_STEP):
        ids = job_ids[start : start + _REMOVE_STEP]
        known = await read.get(kind, ids)
        mine = [job_id for job_id, job in zip(ids, known, strict=True) if job is not None]
        answers = dict(zip(mine, await kind.run("act", kind.name, action, *mine), strict=True))
        acted += [ACTED[answers.get(job_id, 0)] for job_id in ids]
    return acted


async def drain(kind: JobType, delayed: bool) -> None:
    await read.counts(kind)
    for container in ("type", "delayed") if delayed else ("type",):
        await _empty(kind, container)


async def _empty(kind: JobType, container: str, older_ms: Argument = "", limit: int = 0) -> list[str]:
    gone: list[str] = []
    while not limit or len(gone) < limit:
        step = min(STEP, limit - len(gone)) if limit else STEP
        ids: list[bytes] = await kind.run("empty", kind.name, container, step, older_ms)
        gone += [job_id.decode(errors="replace") for job_id in ids]
        if len(ids) < step:
            break
    return gone


async def clean(kind: JobType, state: State, older_than: float, limit: int) -> Sequence[str]:
    """Deletes old jobs, the oldest first: finished ones by the time they finished, others by the time of their add."""
    older_ms = round(older_than * 1000)
    if state in _BY_FINISH:
        await read.counts(kind)
        return await _empty(kind, _BY_FINISH[state], older_ms, limit)
    if state not in _BY_CREATION:
        states = ", ".join(one.value for one in (*_BY_FINISH, *_BY_CREATION))
        raise InvalidOption("state", state.value, f"must be one that can be cleaned: {states}")
    latest = await kind.now_ms() - older_ms
    old: list[str] = []
    cursor: str | None = None
    while True:
        page = await read.jobs(kind, state, STEP, cursor)
        old += [job.id for job in page if job.created_at is not None and codec.to_ms(job.created_at) <= latest]
        cursor = page.cursor
        if cursor is None or (limit and len(old) >= limit):
            break
    old = old[:limit] if limit else old
    acted = await remove(kind, old) if old else ()
    return [job_id for job_id, answer in zip(old, acted, strict=True) if answer is Acted.DONE]


async def obliterate(kind: JobType, force: bool) -> None:
    """Deletes the type and its jobs. Pauses it first, so that no worker claims a job while it is being deleted."""
    running = (await read.counts(kind))[State.ACTIVE]
    if running and not force:
        raise WrongState(f"queue {kind.name!r} has active jobs: wait for them, or obliterate it with force")
    await stop_claims(kind)
    for container in ("claims", "type", "delayed", "completed", "dead"):
        await _empty(kind, container)
    await kind.run("obliterate", kind.name)
