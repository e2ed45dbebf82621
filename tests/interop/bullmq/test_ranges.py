"""A window of a list holds the jobs that Node's getters return for the same range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from awaiting import eventually
from jobwire import ActiveJob, NewJob, Queue, State, Worker

from ..peer import NodeQueue

JOBS = 5
WINDOWS = [(0, 1), (0, JOBS), (1, 2), (JOBS - 1, 3), (JOBS, 1), (0, 100), (2, 100)]
LAST = -1


async def _waiting(queue: Queue, work: Callable[..., Worker]) -> None:
    await queue.add_many([NewJob(n, lifo=n == 3) for n in range(JOBS)])


async def _paused(queue: Queue, work: Callable[..., Worker]) -> None:
    await _waiting(queue, work)
    await queue.admin.pause()


async def _prioritized(queue: Queue, work: Callable[..., Worker]) -> None:
    await queue.add_many([NewJob(n, priority=1 + n % 2) for n in range(JOBS)])


async def _delayed(queue: Queue, work: Callable[..., Worker]) -> None:
    await queue.add_many([NewJob(n, delay=3600 - 60 * (n // 2)) for n in range(JOBS)])


async def _finished(queue: Queue, work: Callable[..., Worker]) -> None:
    async def handle(job: ActiveJob) -> None:
        if (await queue.get(job.id)).name == "bad":
            raise RuntimeError("bad")

    await queue.add_many([NewJob(n, name) for n in range(JOBS) for name in ("good", "bad")])

    async def all_finished() -> bool:
        counts = await queue.counts()
        return counts[State.COMPLETED] + counts[State.FAILED] == 2 * JOBS

    async with work(handle, concurrency=2):
        await eventually(all_finished)


# What makes the jobs; the state here; the type, the getter and its order there; our own order as Node's `asc`.
LISTS: dict[str, tuple[Any, State, str, str, bool]] = {
    "waiting": (_waiting, State.WAITING, "waiting", "getWaiting", True),
    "paused": (_paused, State.WAITING, "waiting", "getWaiting", True),
    "prioritized": (_prioritized, State.WAITING, "prioritized", "getPrioritized", True),
    "delayed": (_delayed, State.DELAYED, "delayed", "getDelayed", True),
    "completed": (_finished, State.COMPLETED, "completed", "getCompleted", False),
    "failed": (_finished, State.FAILED, "failed", "getFailed", False),
}


@pytest.mark.parametrize("which", LISTS)
async def test_windows_are_those_of_node(
    node: NodeQueue, queue: Queue, work: Callable[..., Worker], which: str
) -> None:
    make, state, kind, getter, asc = LISTS[which]
    await make(queue, work)
    types = [kind, "paused"] if which == "paused" else [kind]
    assert len(await node.ask("getJobs", types=types, start=0, end=LAST, asc=asc)) == JOBS
    for skip, limit in WINDOWS:
        asked = {"start": skip, "end": skip + limit - 1}
        for reverse in (False, True):
            ours = [job.id for job in await queue.jobs(state, skip=skip, limit=limit, reverse=reverse)]
            theirs = await node.ask("getJobs", types=types, **asked, asc=asc != reverse)
            assert (skip, limit, reverse, ours) == (skip, limit, reverse, theirs)
        if which != "paused":
            ours = [job.id for job in await queue.jobs(state, skip=skip, limit=limit)]
            assert ours == await node.ask("getOf", method=getter, **asked)
