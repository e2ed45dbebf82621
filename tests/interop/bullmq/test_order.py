"""Jobs run in the same order, whoever adds them and whoever works them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from awaiting import eventually
from jobwire import ActiveJob, NewJob, Queue, Worker

from ..peer import NodeQueue

# As they are added: the name, and what is asked for. Delays in milliseconds.
ASKED: dict[str, dict[str, Any]] = {
    "first": {},
    "urgent twin 1": {"priority": 1},
    "later": {"delay": 90},
    "second": {},
    "casual 1": {"priority": 7},
    "in front": {"lifo": True},
    "sooner": {"delay": 30},
    "sooner too": {"delay": 30},
    "urgent but later": {"priority": 1, "delay": 60},
    "urgent twin 2": {"priority": 1},
    "casual 2": {"priority": 7},
    "least of all": {"priority": 2_097_151},
}
# A plain job beats every priority; delayed ones that have come due stand in line behind those that were there.
EXPECTED = [
    *("in front", "first", "second", "sooner", "sooner too", "later"),
    *("urgent twin 1", "urgent twin 2", "urgent but later", "casual 1", "casual 2", "least of all"),
]
LONGEST_DELAY = 0.09


async def _added_by_node(node: NodeQueue, queue: Queue) -> None:
    await node.add_bulk([{"name": name, "data": 0, "opts": opts} for name, opts in ASKED.items()])


async def _added_by_jobwire(node: NodeQueue, queue: Queue) -> None:
    jobs = []
    for name, opts in ASKED.items():
        options = {**opts, "delay": opts["delay"] / 1000} if "delay" in opts else opts
        jobs.append(NewJob(0, name, **options))
    await queue.add_many(jobs)


async def _worked_by_node(node: NodeQueue, work: Callable[..., Worker]) -> list[str]:
    async with node.work("echo") as worker:

        async def all_run() -> list[str] | None:
            ids = await worker.runs()
            return ids if len(ids) == len(ASKED) else None

        ids = await eventually(all_run)
        return [(await node.get(job_id)).name for job_id in ids]


async def _worked_by_jobwire(node: NodeQueue, work: Callable[..., Worker]) -> list[str]:
    names: list[str] = []

    async def handle(job: ActiveJob) -> None:
        names.append(job.name)

    async def all_run() -> bool:
        return len(names) == len(ASKED)

    async with work(handle):
        await eventually(all_run)
    return names


@pytest.mark.parametrize("add", [_added_by_node, _added_by_jobwire])
@pytest.mark.parametrize("run", [_worked_by_node, _worked_by_jobwire])
async def test_priorities_delays_and_lifo_give_one_order(
    node: NodeQueue, queue: Queue, work: Callable[..., Worker], add: Any, run: Any
) -> None:
    await add(node, queue)
    due = time.time() + LONGEST_DELAY
    while time.time() <= due:
        await asyncio.sleep(due - time.time() + 0.002)
    assert await run(node, work) == EXPECTED


async def test_a_delayed_job_of_node_wakes_an_idle_jobwire_worker_when_it_is_due(
    node: NodeQueue, work: Callable[..., Worker], blocked_workers: Callable[[int], Any]
) -> None:
    async def handle(job: ActiveJob) -> float:
        return time.time() * 1000

    async with work(handle):
        await blocked_workers(1)
        job_id = await node.add(delay=400)
        ran_at = await node.ask("waitUntilFinished", job=job_id, ms=20_000)
    due = (await node.get(job_id)).timestamp + 400
    assert due <= ran_at < due + 1000


async def test_a_delayed_job_of_jobwire_wakes_an_idle_node_worker_when_it_is_due(
    node: NodeQueue, queue: Queue, blocked_workers: Callable[[int], Any]
) -> None:
    async with node.work("echo"):
        await blocked_workers(1)
        added = await queue.add(delay=0.4)
        await added.wait(timeout=20)
    job = await node.get(added.id)
    due = job.timestamp + 400
    assert due <= job.processedOn < due + 1000
