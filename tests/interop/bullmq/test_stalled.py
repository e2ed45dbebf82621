"""The jobs of a worker that died are taken over by the other language."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from awaiting import eventually
from jobwire import ActiveJob, Queue, State, Worker

from ..peer import NodeJob, NodeQueue

HANGING_WORKER = Path(__file__).parent / "hanging_worker.py"
LEASE = 0.6
CHECK_EVERY = 0.2
MILLI = {"lockDuration": 600, "stalledInterval": 200}
Work = Callable[..., Worker]
Finished = Callable[[str], Awaitable[NodeJob]]
pytestmark = pytest.mark.slow


async def _echo(job: ActiveJob) -> dict:
    return {"by": "jobwire", "data": job.data}


async def _active(node: NodeQueue, job_id: str) -> None:
    async def look() -> bool:
        return (await node.get(job_id)).state == "active"

    await eventually(look)


async def test_jobwire_recovers_the_job_of_a_killed_node_worker(
    node: NodeQueue, doomed: NodeQueue, work: Work, finished_in_node: Finished
) -> None:
    job_id = await node.add("precious")
    async with doomed.work("hang", **MILLI):
        await _active(node, job_id)
        doomed.peer.kill()
        async with work(_echo, lease=LEASE, recover_every=CHECK_EVERY) as worker:
            job = await finished_in_node(job_id)
    assert job.returnvalue == {"by": "jobwire", "data": "precious"}
    assert (job.stalledCounter, job.attemptsMade, job.attemptsStarted) == (1, 1, 2)
    assert worker.stats.recovered == 1


async def test_node_recovers_the_job_of_a_killed_jobwire_worker(node: NodeQueue, queue: Queue, url: str) -> None:
    added = await queue.add("precious")
    victim = await asyncio.create_subprocess_exec(
        *(sys.executable, HANGING_WORKER, url, queue.name, str(LEASE)), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert await victim.stdout.readline() == f"running {added.id}\n".encode()
    finally:
        victim.kill()
        await victim.wait()
    async with node.work("echo", **MILLI):
        await added.wait(timeout=20)
    job = await node.get(added.id)
    assert (job.returnvalue["by"], job.returnvalue["data"]) == ("node", "precious")
    assert (job.stalledCounter, job.attemptsMade, job.attemptsStarted) == (1, 1, 2)


async def test_a_running_jobwire_job_is_left_alone_by_the_stalled_check_of_node(
    node: NodeQueue, queue: Queue, work: Work
) -> None:
    """Its lock is renewed, so checks that come several times per lease find it alive."""
    runs = []

    async def handle(job: ActiveJob) -> str:
        runs.append(job.id)
        await asyncio.sleep(3 * LEASE)
        return "in one go"

    added = await queue.add()
    async with work(handle, lease=LEASE, recover_every=CHECK_EVERY):
        await _active(node, added.id)
        async with node.work("echo", **MILLI):
            assert await added.wait(timeout=20) == "in one go"
    assert (runs, (await node.get(added.id)).stalledCounter) == ([added.id], 0)


async def test_a_running_node_job_is_left_alone_by_the_stalled_check_of_jobwire(
    node: NodeQueue, queue: Queue, work: Work
) -> None:
    added = await queue.add()
    async with node.work("slow", settings={"ms": 3000 * LEASE}, **MILLI):
        await _active(node, added.id)
        async with work(_echo, lease=LEASE, recover_every=CHECK_EVERY) as worker:
            assert await added.wait(timeout=20) == {"by": "node"}
    assert worker.stats.recovered == 0


async def test_a_job_that_stalls_too_often_fails_with_the_words_of_node(
    node: NodeQueue, doomed: NodeQueue, queue: Queue, work: Work, finished_in_node: Finished
) -> None:
    job_id = await node.add("poison", attempts=5)
    async with doomed.work("hang", **MILLI):
        await _active(node, job_id)
        doomed.peer.kill()
        async with work(_echo, lease=LEASE, recover_every=CHECK_EVERY, max_stalled=0):
            job = await finished_in_node(job_id)
    assert (job.state, job.failedReason) == ("failed", "job stalled more than allowable limit")
    assert (await queue.get(job_id)).state is State.FAILED
