"""Operators' actions on single jobs and on a whole queue.

Deletions of many jobs go in steps of at most STEP, so that the server is never blocked for long. Each step is atomic,
the whole is not: between two steps other clients may add and claim jobs.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bullmq.connection import Server
from jobwire.backends.redisio.answers import ACTED
from jobwire.boundary import Acted
from jobwire.errors import InvalidOption, WrongState
from jobwire.model import State

STEP = 1000
"""Jobs per script call: 1000 deletions take about 7 ms of the server's time."""
_REMOVE_STEP = 20
"""Jobs per call of `remove`: a waiting job is found by walking its list, 16 ms each in a list of a million."""
_CLEANABLE = {
    State.WAITING: ("paused", "wait", "prioritized"),
    State.DELAYED: ("delayed",),
    State.ACTIVE: ("active",),
    State.COMPLETED: ("completed",),
    State.FAILED: ("failed",),
}


async def retry(server: Server, queue: str, job_ids: Sequence[str], *, reset_attempts: bool = False) -> Sequence[Acted]:
    """Makes finished jobs ready again. With `reset_attempts`, they get all of their attempts again."""
    return await _act(server, queue, "retry_finished", job_ids, flag="1" if reset_attempts else "0")


async def promote(server: Server, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
    return await _act(server, queue, "promote", job_ids)


async def remove(server: Server, queue: str, job_ids: Sequence[str], *, children: bool) -> Sequence[Acted]:
    """Deletes jobs. Refuses, with WRONG_STATE, the job that a schedule needs to make the next one."""
    return await _act(server, queue, "remove", job_ids, flag="1" if children else "0", step=_REMOVE_STEP)


async def _act(
    server: Server, queue: str, script: str, job_ids: Sequence[str], *, flag: str | None = None, step: int = STEP
) -> Sequence[Acted]:
    first = [] if flag is None else [flag]
    acted: list[Acted] = []
    for start in range(0, len(job_ids), step):
        answers: list[int] = await server.run(script, queue, [*first, *job_ids[start : start + step]])
        acted.extend(ACTED[answer] for answer in answers)
    return acted


async def drain(server: Server, queue: str, delayed: bool) -> None:
    """Deletes the jobs that wait now, except the job that a schedule needs to make the next one."""
    keys = server.keys(queue)
    sizes: list[int] = await server.store.calls(
        [("LLEN", keys.wait), ("LLEN", keys.paused), ("ZCARD", keys.delayed), ("ZCARD", keys.prioritized)]
    )
    for container, size in zip(("wait", "paused", "delayed", "prioritized"), sizes, strict=True):
        if container == "delayed" and not delayed:
            continue
        kept = 0
        left = size
        while left > 0:
            checked: int
            checked, kept_now = await server.run("drain", queue, [container, min(left, STEP), kept])
            if checked == 0:
                break
            left -= checked
            kept += kept_now


async def clean(server: Server, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
    """Deletes old jobs, the oldest first, except running jobs and those that a schedule needs."""
    if state not in _CLEANABLE:
        states = ", ".join(cleanable.value for cleanable in _CLEANABLE)
        raise InvalidOption("state", state.value, f"must be one that BullMQ can clean: {states}")
    latest = await server.scripts.clock.now_ms() - round(older_than * 1000)
    gone: list[str] = []
    for container in _CLEANABLE[state]:
        kept, more = 0, 1
        while more and (limit == 0 or len(gone) < limit):
            most = limit - len(gone) if limit else STEP
            ids: list[bytes]
            kept, more, ids = await server.run("clean", queue, [container, latest, STEP, most, kept])
            gone.extend(job_id.decode(errors="replace") for job_id in ids)
    return gone


async def obliterate(server: Server, queue: str, force: bool) -> None:
    """Deletes the queue. Pauses it first, so that no worker claims a job while it is being deleted.

    Checks for running jobs before that, so a refusal leaves the queue as it was.
    """
    if not force and await server.store.call("LLEN", server.keys(queue).active):
        raise _running(queue)
    await server.run("pause", queue)
    while (answer := await server.run("obliterate", queue, [int(force), STEP])) != 0:
        if answer == -2:
            raise _running(queue)
        if answer == -1:
            raise WrongState(
                f"queue {queue!r} was resumed while it was being obliterated: part of its jobs are deleted; call again"
            )


def _running(queue: str) -> WrongState:
    return WrongState(f"queue {queue!r} has active jobs: wait for them, or obliterate it with force")
