"""An idle worker learns of a job from whoever adds it.

Workers in both languages also look by themselves every few seconds, which would hide a wake-up that was lost. Here that
look is an hour away: a job runs because its worker was woken, or not within the time that a test has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from awaiting import eventually
from jobwire import ActiveJob, NewJob, Queue, Worker
from jobwire.backends.bullmq.work import wakeup
from jobwire.model import State
from jobwire.worker import listener

from ..peer import NodeQueue

FOR_EVER = 3600
WITHIN = 120
KINDS = {"plain": {}, "with priority": {"priority": 3}, "in front": {"lifo": True}}


@pytest.fixture(autouse=True)
def no_look_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name in ((wakeup, "LONGEST_WAIT"), (wakeup, "LONGEST_WAIT_FOR_DUE"), (listener, "_LONGEST_WAIT")):
        monkeypatch.setattr(place, name, FOR_EVER)


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())
async def test_an_idle_node_worker_wakes_when_jobwire_adds(
    node: NodeQueue, queue: Queue, blocked_workers: Callable[[int], Any], options: dict[str, Any]
) -> None:
    async with node.work("echo", drainDelay=FOR_EVER):
        await blocked_workers(1)
        await (await queue.add(1, **options)).wait(timeout=WITHIN)

        await blocked_workers(1)
        for job in await queue.add_many([NewJob(number, **options) for number in range(5)]):
            await job.wait(timeout=WITHIN)


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())
async def test_an_idle_jobwire_worker_wakes_when_node_adds(
    node: NodeQueue, work: Callable[..., Worker], blocked_workers: Callable[[int], Any], options: dict[str, Any]
) -> None:
    async def handle(job: ActiveJob) -> None:
        return None

    async with work(handle):
        await blocked_workers(1)
        job_id = await node.add(1, **options)
        await node.ask("waitUntilFinished", job=job_id, ms=1000 * WITHIN)


async def test_one_idle_worker_passes_the_wake_up_on_to_the_next(
    node: NodeQueue, queue: Queue, work: Callable[..., Worker], blocked_workers: Callable[[int], Any]
) -> None:
    """Two jobs, two idle workers with one slot each, one wake-up in the store: both jobs must run side by side."""
    ran: list[str] = []
    both_run = asyncio.Event()

    async def handle(job: ActiveJob) -> None:
        ran.append(job.id)
        await both_run.wait()

    async def look() -> bool:
        return (await queue.counts())[State.ACTIVE] == 2

    async with node.work("untilData", drainDelay=FOR_EVER) as worker, work(handle):
        await blocked_workers(2)
        added = await queue.add_many([NewJob(None), NewJob(None)])
        await eventually(look, within=WITHIN)
        both_run.set()
        for job in added:
            await queue.admin.update_data(job.id, "go on")
            await job.wait(timeout=WITHIN)
        assert (len(ran), len(await worker.runs())) == (1, 1)
