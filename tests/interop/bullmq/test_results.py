"""What one language leaves on a job, the other reads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from jobwire import ActiveJob, JobFailed, Queue, State, Unrecoverable, Worker

from ..peer import NodeJob, NodeQueue

Work = Callable[..., Worker]
Finished = Callable[[str], Awaitable[NodeJob]]


async def test_node_reads_the_result_of_a_job_that_jobwire_ran(
    node: NodeQueue, work: Work, finished_in_node: Finished
) -> None:
    async def handle(job: ActiveJob) -> dict:
        return {"by": "jobwire", "name": job.name, "data": job.data, "id": job.id}

    job_id = await node.add({"to": "a@example.com"}, name="welcome")
    async with work(handle, name="pen"):
        job = await finished_in_node(job_id)

    assert job.returnvalue == {"by": "jobwire", "name": "welcome", "data": {"to": "a@example.com"}, "id": job_id}
    assert (job.state, job.attemptsMade, job.attemptsStarted, job.processedBy) == ("completed", 1, 1, "pen")
    assert job.timestamp <= job.processedOn <= job.finishedOn


async def test_jobwire_reads_the_result_of_a_job_that_node_ran(node: NodeQueue, queue: Queue) -> None:
    added = await queue.add({"to": "a@example.com"}, name="welcome")
    async with node.work("echo", name="quill"):
        result = await added.wait(timeout=20)
    job = await queue.get(added.id)

    assert result == {"by": "node", "name": "welcome", "data": {"to": "a@example.com"}}
    assert (job.result, job.state, job.attempts_made, job.worker) == (result, State.COMPLETED, 1, "quill")
    assert job.created_at <= job.started_at <= job.finished_at


async def test_node_reads_progress_and_log_lines_that_jobwire_wrote(
    node: NodeQueue, work: Work, finished_in_node: Finished
) -> None:
    async def handle(job: ActiveJob) -> None:
        await job.update_progress(10)
        await job.update_progress({"step": "half way", "of": [1, 2]})
        await job.log("first")
        await job.log("zweite Zeile, größer ✓")

    job_id = await node.add()
    async with work(handle):
        job = await finished_in_node(job_id)

    assert (job.progress, job.logs) == (
        {"step": "half way", "of": [1, 2]},
        ["first", "zweite Zeile, größer ✓"],
    )


async def test_jobwire_reads_progress_and_log_lines_that_node_wrote(node: NodeQueue, queue: Queue) -> None:
    added = await queue.add({"progress": [10, {"step": "half way"}], "lines": ["first", "größer ✓"]})
    async with node.work("report"):
        await added.wait(timeout=20)
    job = await queue.get(added.id)

    assert job.progress == {"step": "half way"}
    assert list(await queue.logs(added.id)) == ["first", "größer ✓"]


async def test_node_reads_why_a_job_failed_in_jobwire(node: NodeQueue, work: Work, finished_in_node: Finished) -> None:
    async def handle(job: ActiveJob) -> None:
        raise ValueError(f"no such address, run {job.attempts_made + 1}")

    job_id = await node.add(attempts=2)
    async with work(handle):
        job = await finished_in_node(job_id)

    assert (job.state, job.failedReason, job.attemptsMade) == ("failed", "no such address, run 2", 2)
    assert len(job.stacktrace) == 2
    assert "ValueError" in job.stacktrace[1]
    assert "test_results.py" in job.stacktrace[1]


async def test_jobwire_reads_why_a_job_failed_in_node(node: NodeQueue, queue: Queue) -> None:
    added = await queue.add(attempts=2)
    async with node.work("fail", settings={"times": 9}):
        with pytest.raises(JobFailed, match="node failed run 2"):
            await added.wait(timeout=20)
    job = await queue.get(added.id)

    assert (job.state, job.error, job.attempts_made) == (State.FAILED, "node failed run 2", 2)
    assert len(job.stacktrace) == 2
    assert "processors.mjs" in job.stacktrace[1]


async def test_a_failure_for_good_uses_no_further_attempt_in_either_language(
    node: NodeQueue, queue: Queue, work: Work, finished_in_node: Finished
) -> None:
    async def refuse(job: ActiveJob) -> None:
        raise Unrecoverable("jobwire refuses")

    by_jobwire = await node.add(attempts=5)
    async with work(refuse):
        job = await finished_in_node(by_jobwire)
    assert (job.failedReason, job.attemptsMade) == ("jobwire refuses", 1)

    by_node = await queue.add(attempts=5)
    async with node.work("refuse"):
        with pytest.raises(JobFailed, match="node refuses"):
            await by_node.wait(timeout=20)
    assert (await queue.get(by_node.id)).attempts_made == 1


async def test_node_waits_for_jobs_that_jobwire_runs(node: NodeQueue, work: Work) -> None:
    async def handle(job: ActiveJob) -> str:
        if job.data == "bad":
            raise Unrecoverable("unreadable")
        return f"read {job.data}"

    good, bad = await node.add("good"), await node.add("bad")
    async with work(handle):
        assert await node.ask("waitUntilFinished", job=good, ms=20_000) == "read good"
        with pytest.raises(Exception, match="unreadable"):
            await node.ask("waitUntilFinished", job=bad, ms=20_000)


async def test_node_keeps_as_many_finished_jobs_as_it_asked_jobwire_to(
    node: NodeQueue, work: Work, queue: Queue, finished_in_node: Finished
) -> None:
    async def handle(job: ActiveJob) -> None:
        return None

    ids = [await node.add(number, removeOnComplete=2) for number in range(5)]
    async with work(handle):
        await finished_in_node(ids[-1])
    assert [await node.get(one) is not None for one in ids] == [False, False, False, True, True]
    assert (await queue.counts())[State.COMPLETED] == 2
