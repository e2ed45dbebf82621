"""Jobs that a program claims by hand, beside Node's workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from jobwire import Queue

from ..peer import NodeJob, NodeQueue

Finished = Callable[[str], Awaitable[NodeJob]]


async def test_node_runs_a_job_that_was_released(node: NodeQueue, queue: Queue, finished_in_node: Finished) -> None:
    job_id = await node.add({"to": "a"}, attempts=1)
    job = await queue.claim()
    assert job is not None
    assert (job.id, job.data) == (job_id, {"to": "a"})
    held = await node.get(job_id)
    assert held is not None
    assert held.state == "active"
    async with node.work("echo"):
        await job.release()
        done = await finished_in_node(job_id)
    assert (done.state, done.attemptsMade) == ("completed", 1)
    assert done.returnvalue == {"by": "node", "name": "job", "data": {"to": "a"}}


async def test_node_sees_why_a_job_failed_and_runs_its_next_attempt(
    node: NodeQueue, queue: Queue, finished_in_node: Finished
) -> None:
    job_id = await node.add(1, attempts=2)
    job = await queue.claim()
    assert job is not None
    assert await job.fail(ValueError("no such address")) is True
    waiting = await node.get(job_id)
    assert waiting is not None
    assert (waiting.state, waiting.failedReason, waiting.attemptsMade) == ("waiting", "no such address", 1)
    assert "ValueError: no such address" in waiting.stacktrace[0]
    async with node.work("echo"):
        done = await finished_in_node(job_id)
    assert (done.state, done.attemptsMade) == ("completed", 2)


async def test_node_sees_a_failure_for_good_and_a_result(node: NodeQueue, queue: Queue) -> None:
    failed_id, completed_id = await node.add(1, attempts=5), await node.add(2)
    failing, completing = await queue.claim(), await queue.claim()
    assert failing is not None
    assert completing is not None
    assert await failing.fail("no such address", retry=False) is False
    await completing.complete({"ok": True})
    failed, completed = await node.get(failed_id), await node.get(completed_id)
    assert failed is not None
    assert completed is not None
    assert (failed.state, failed.failedReason) == ("failed", "no such address")
    assert (completed.state, completed.returnvalue) == ("completed", {"ok": True})


async def test_a_claim_that_waits_is_woken_by_node(
    node: NodeQueue, queue: Queue, blocked_workers: Callable[[int], Any]
) -> None:
    claiming = asyncio.create_task(queue.claim(timeout=60))
    await blocked_workers(1)
    job_id = await node.add(1)
    job = await claiming
    assert job is not None
    assert job.id == job_id
    await job.complete()
