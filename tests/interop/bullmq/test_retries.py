"""A job's attempts and the waits between them belong to the job, not to a language."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from awaiting import eventually
from jobwire import ActiveJob, Backoff, Queue, State, Worker

from ..peer import NodeJob, NodeQueue

Work = Callable[..., Worker]
Finished = Callable[[str], Awaitable[NodeJob]]


async def _fail_once_in_jobwire(node: NodeQueue, work: Work, job_id: str, run: int) -> NodeJob:
    async def handle(job: ActiveJob) -> None:
        raise RuntimeError(f"jobwire failed run {job.attempts_made + 1}")

    async with work(handle):
        return await _delayed_after(node, job_id, run)


async def _fail_once_in_node(node: NodeQueue, work: Work, job_id: str, run: int) -> NodeJob:
    async with node.work("fail", settings={"times": 99}):
        return await _delayed_after(node, job_id, run)


async def _delayed_after(node: NodeQueue, job_id: str, run: int) -> NodeJob:
    async def look() -> NodeJob | None:
        job = await node.get(job_id)
        return job if job is not None and job.attemptsMade == run and job.state == "delayed" else None

    return await eventually(look)


async def _added_by_node(node: NodeQueue, queue: Queue) -> str:
    return await node.add(attempts=4, backoff={"type": "exponential", "delay": 60_000})


async def _added_by_jobwire(node: NodeQueue, queue: Queue) -> str:
    return (await queue.add(attempts=4, backoff=Backoff.exponential(60))).id


@pytest.mark.parametrize("add", [_added_by_node, _added_by_jobwire])
async def test_attempts_go_on_in_the_other_language_with_the_backoff_the_job_carries(
    node: NodeQueue, queue: Queue, work: Work, finished_in_node: Finished, add: Any
) -> None:
    job_id = await add(node, queue)

    first = await _fail_once_in_node(node, work, job_id, 1)
    assert (first.failedReason, first.delay) == ("node failed run 1", 60_000)
    await queue.admin.promote(job_id)

    second = await _fail_once_in_jobwire(node, work, job_id, 2)
    assert (second.failedReason, second.delay) == ("jobwire failed run 2", 120_000)
    await node.ask("promote", job=job_id)

    third = await _fail_once_in_jobwire(node, work, job_id, 3)
    assert (third.failedReason, third.delay) == ("jobwire failed run 3", 240_000)
    await queue.admin.promote(job_id)

    async with node.work("fail", settings={"times": 3}):
        last = await finished_in_node(job_id)
    assert (last.returnvalue, last.attemptsMade, last.attemptsStarted) == ({"by": "node", "run": 4}, 4, 4)
    assert last.stacktrace[0].splitlines()[0] == "Error: node failed run 1"
    assert len(last.stacktrace) == 3


async def test_jobwire_completes_what_node_failed(
    node: NodeQueue, queue: Queue, work: Work, finished_in_node: Finished
) -> None:
    async def handle(job: ActiveJob) -> dict:
        return {"by": "jobwire", "run": job.attempts_made + 1}

    job_id = await node.add(attempts=2, backoff=60_000)
    await _fail_once_in_node(node, work, job_id, 1)
    await queue.admin.promote(job_id)
    async with work(handle):
        job = await finished_in_node(job_id)
    assert (job.returnvalue, job.attemptsMade, job.failedReason) == (
        {"by": "jobwire", "run": 2},
        2,
        "node failed run 1",
    )


async def test_retries_without_backoff_are_taken_by_whoever_is_free(node: NodeQueue, queue: Queue, work: Work) -> None:
    async def handle(job: ActiveJob) -> str:
        if job.attempts_made < 1:
            raise RuntimeError("jobwire failed run 1")
        return "jobwire"

    added = [await queue.add(number, attempts=50) for number in range(20)]
    async with work(handle), node.work("fail", settings={"times": 1}):
        for job in added:
            await job.wait(timeout=20)
    jobs = [await queue.get(job.id) for job in added]
    assert [(job.state, job.attempts_made) for job in jobs] == [(State.COMPLETED, 2)] * 20


async def test_node_retries_what_failed_in_jobwire_and_the_reverse(
    node: NodeQueue, queue: Queue, work: Work, finished_in_node: Finished
) -> None:
    async def fail(job: ActiveJob) -> None:
        raise RuntimeError("no")

    job_id = await node.add("again")
    async with work(fail):
        assert (await finished_in_node(job_id)).state == "failed"
    await node.ask("retry", job=job_id, state="failed")
    assert (await queue.get(job_id)).state is State.WAITING
    async with node.work("fail", settings={"times": 99}):
        assert (await finished_in_node(job_id)).failedReason == "node failed run 2"
    await queue.admin.retry(job_id)
    assert (await node.get(job_id)).state == "waiting"
    async with node.work("reflect"):
        assert (await finished_in_node(job_id)).returnvalue == "again"
