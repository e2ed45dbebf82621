"""An idle worker learns of a job at once from whoever adds it, not at its next look (every five seconds)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from jobwire import ActiveJob, NewJob, Queue, Worker

from ..peer import NodeQueue

AT_ONCE = 1.0
KINDS = {"plain": {}, "with priority": {"priority": 3}, "in front": {"lifo": True}}


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())
async def test_an_idle_node_worker_wakes_when_jobwire_adds(
    node: NodeQueue, queue: Queue, blocked_workers: Callable[[int], Any], options: dict[str, Any]
) -> None:
    async with node.work("echo"):
        await blocked_workers(1)
        began = time.monotonic()
        await (await queue.add(1, **options)).wait(timeout=20)
        first = time.monotonic() - began

        await blocked_workers(1)
        began = time.monotonic()
        jobs = await queue.add_many([NewJob(number, **options) for number in range(5)])
        for job in jobs:
            await job.wait(timeout=20)
        bulk = time.monotonic() - began
    assert max(first, bulk) < AT_ONCE


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())
async def test_an_idle_jobwire_worker_wakes_when_node_adds(
    node: NodeQueue, work: Callable[..., Worker], blocked_workers: Callable[[int], Any], options: dict[str, Any]
) -> None:
    async def handle(job: ActiveJob) -> None:
        return None

    async with work(handle):
        await blocked_workers(1)
        began = time.monotonic()
        job_id = await node.add(1, **options)
        await node.ask("waitUntilFinished", job=job_id, ms=20_000)
    assert time.monotonic() - began < AT_ONCE


async def test_one_idle_worker_passes_the_wake_up_on_to_the_next(
    node: NodeQueue, queue: Queue, work: Callable[..., Worker], blocked_workers: Callable[[int], Any]
) -> None:
    """Two jobs, two idle workers with one slot each, one wake-up in the store: both jobs must start at once."""
    ran: list[str] = []

    async def handle(job: ActiveJob) -> None:
        ran.append(job.id)
        await asyncio.sleep(2 * AT_ONCE)

    async with node.work("slow", settings={"ms": 2000 * AT_ONCE}) as worker, work(handle):
        await blocked_workers(2)
        added = await queue.add_many([NewJob(1), NewJob(2)])
        for job in added:
            await job.wait(timeout=20)
        assert (len(ran), len(await worker.runs())) == (1, 1)
    jobs = [await node.get(job.id) for job in added]
    assert all(job.processedOn - job.timestamp < 1000 * AT_ONCE for job in jobs)
