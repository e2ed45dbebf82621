"""What an operator does to a job type and its jobs. Deletions of many go in steps, each some milliseconds long."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.job_type import JobType
from jobwire.backends.bridgemq.native.routing import route_of
from jobwire.backends.bridgemq.operate import read
from jobwire.backends.bridgemq.operate.pause import stop_claims
from jobwire.backends.bridgemq.produce.add import route_words
from jobwire.backends.redisio.scripts import Argument
from jobwire.boundary import Acted
from jobwire.errors import InvalidOption, WrongState
from jobwire.model import State

STEP = 500
_REMOVE_STEP = 50
_ANSWERS = {1: Acted.DONE, 0: Acted.NOT_FOUND, -1: Acted.WRONG_STATE, -2: Acted.LOCKED}
_BY_END = {State.COMPLETED: "completed", State.FAILED: "dead"}
_BY_BIRTH = (State.WAITING, State.DELAYED)


async def retry(kind: JobType, job_ids: Sequence[str]) -> Sequence[Acted]:
    """Run finished jobs again, those of the dead letter among them: their failures are forgotten."""
    found = await read.get(kind, job_ids)
    raws = await _raw(kind, job_ids)
    acted: list[Acted] = []
    for job_id, job, raw in zip(job_ids, found, raws, strict=True):
        if job is None:
            acted.append(Acted.NOT_FOUND)
            continue
        if "type" not in job.raw:
            acted.append(Acted.WRONG_STATE)  # its data can't be read, so it can't be run either
            continue
        document = dict(job.raw)
        front = "f" if job.priority >= codec.FRONT_FROM else ""
        anew = codec.rewritten({**document, "attempts": 0})
        args: list[Argument] = [kind.name, "retry", job_id, raw, anew, *route_words(route_of(document)), front]
        [answer] = await kind.run("act", *args)
        acted.append(_ANSWERS[answer])
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
        acted += [_ANSWERS[answers.get(job_id, 0)] for job_id in ids]
    return acted


async def drain(kind: JobType, delayed: bool) -> None:
    await read.counts(kind)
    for place in ("type", "delayed") if delayed else ("type",):
        await _empty(kind, place)


async def _empty(kind: JobType, place: str, older_ms: Argument = "", limit: int = 0) -> list[str]:
    gone: list[str] = []
    while not limit or len(gone) < limit:
        step = min(STEP, limit - len(gone)) if limit else STEP
        ids: list[bytes] = await kind.run("empty", kind.name, place, step, older_ms)
        gone += [job_id.decode(errors="replace") for job_id in ids]
        if len(ids) < step:
            break
    return gone


async def clean(kind: JobType, state: State, older_than: float, limit: int) -> Sequence[str]:
    """Delete old jobs, the oldest first: finished ones by their end, the others by the moment they were added."""
    older_ms = round(older_than * 1000)
    if state in _BY_END:
        await read.counts(kind)
        return await _empty(kind, _BY_END[state], older_ms, limit)
    if state not in _BY_BIRTH:
        states = ", ".join(one.value for one in (*_BY_END, *_BY_BIRTH))
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
    """Delete the type and its jobs. It is paused meanwhile, so that nobody takes a job from under the deletion."""
    running = (await read.counts(kind))[State.ACTIVE]
    if running and not force:
        raise WrongState(f"queue {kind.name!r} has active jobs: wait for them, or obliterate it with force")
    await stop_claims(kind)
    for place in ("claims", "type", "delayed", "completed", "dead"):
        await _empty(kind, place)
    await kind.run("obliterate", kind.name)
