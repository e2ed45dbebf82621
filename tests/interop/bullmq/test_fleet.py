"""A mixed fleet on one queue: every job runs once, and everybody does some of the work."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable

import pytest

from awaiting import eventually
from jobwire import ActiveJob, NewJob, Queue, State, Worker

from ..peer import NodeQueue, Peer

JOBS = 1000
pytestmark = pytest.mark.slow


async def test_a_thousand_jobs_run_once_each_in_two_node_and_two_jobwire_workers(
    node: NodeQueue, queue: Queue, work: Callable[..., Worker], blocked_workers: Callable[[int], object]
) -> None:
    await _share_the_work([node, node], queue, work, blocked_workers)


async def test_both_node_majors_and_jobwire_share_a_queue(
    both_majors: dict[str, Peer],
    unique: str,
    queue: Queue,
    work: Callable[..., Worker],
    blocked_workers: Callable[[int], object],
) -> None:
    nodes = [NodeQueue(peer, unique, queue.name) for peer in both_majors.values()]
    await _share_the_work(nodes, queue, work, blocked_workers)


async def _share_the_work(
    nodes: list[NodeQueue], queue: Queue, work: Callable[..., Worker], blocked_workers: Callable[[int], object]
) -> None:
    """The ledger has one entry per call of a handler, so a job that ran twice shows even if its result does not."""
    ledger: dict[str, list[str]] = {"jobwire 1": [], "jobwire 2": []}

    def handler(label: str) -> Callable[[ActiveJob], object]:
        async def handle(job: ActiveJob) -> dict:
            ledger[label].append(job.id)
            await asyncio.sleep(0.002)
            return {"by": label}

        return handle

    async with contextlib.AsyncExitStack() as fleet:
        for label in ledger:
            await fleet.enter_async_context(work(handler(label), concurrency=5))
        theirs = {}
        for number, node in enumerate(nodes, 1):
            label = f"node {number}"
            worker = node.work("slow", label=label, settings={"ms": 2}, concurrency=5)
            theirs[label] = await fleet.enter_async_context(worker)
        await blocked_workers(len(ledger) + len(theirs))

        half = JOBS // 2
        ours = queue.add_many(NewJob(number) for number in range(half))
        from_node = nodes[0].add_bulk([{"name": "job", "data": number} for number in range(half, JOBS)])
        added, ids = await asyncio.gather(ours, from_node)

        async def all_completed() -> bool:
            return (await queue.counts())[State.COMPLETED] == JOBS

        await eventually(all_completed, within=60)
        for label, worker in theirs.items():
            ledger[label] = await worker.runs()

    runs = Counter(job_id for each in ledger.values() for job_id in each)
    assert runs == Counter([*(job.id for job in added), *ids])
    shares = {label: len(each) for label, each in ledger.items()}
    assert all(shares.values()), f"somebody did nothing: {shares}"
    who = {job_id: label for label, each in ledger.items() for job_id in each}
    results = {job.id: (await queue.get(job.id)).result for job in added}
    assert results == {job.id: {"by": who[job.id]} for job in added}
    assert (await nodes[0].counts())["completed"] == JOBS
