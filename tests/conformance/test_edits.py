"""Changing jobs that are in the store, one or all of a kind."""

from __future__ import annotations

import pytest

from jobwire.boundary import Feature
from jobwire.errors import InvalidOption, JobNotFound, Unrecoverable, WrongState
from jobwire.model import State
from jobwire.options import NewJob


async def _order(queue):
    return [job.data for job in await queue.jobs(State.WAITING)]


async def test_a_worker_gets_the_data_that_a_job_was_given_later(queue, work, needs):
    async def handle(job):
        return job.data

    with needs(queue, Feature.EDITS):
        job = await queue.add({"draft": 1})
        await queue.admin.update_data(job.id, {"final": [1, "é"]})
        async with work(handle):
            assert await job.wait(10) == {"final": [1, "é"]}
        with pytest.raises(JobNotFound):
            await queue.admin.update_data("00000000-0000-4000-8000-000000000000", 1)
        with pytest.raises(InvalidOption):
            await queue.admin.update_data(job.id, float("nan"))


async def test_a_handler_notes_how_far_it_is_in_its_data(queue, work, needs):
    runs = []

    async def handle(job):
        runs.append(job.data)
        if job.data == "step 1":
            await job.update_data("step 2")
            raise OSError("lost the way")
        return "there"

    with needs(queue, Feature.EDITS, Feature.ATTEMPTS):
        job = await queue.add("step 1", attempts=2)
        await queue.admin.update_data(job.id, "step 1")
        async with work(handle):
            assert await job.wait(10) == "there"
        assert runs == ["step 1", "step 2"]


async def test_a_job_moves_to_its_new_priority(queue, needs):
    with needs(queue, Feature.EDITS):
        ids = {data: (await queue.add(data, priority=5)).id for data in ("a", "b", "c")}
        await queue.admin.change_priority(ids["c"], 1)
        assert await _order(queue) == ["c", "a", "b"]
        await queue.admin.change_priority(ids["a"], 5)
        assert await _order(queue) == ["c", "b", "a"]
        await queue.admin.change_priority(ids["a"], 5, front=True)
        assert await _order(queue) == ["c", "a", "b"]
        assert (await queue.get(ids["c"])).priority == 1
        with pytest.raises(JobNotFound):
            await queue.admin.change_priority("nobody", 1)
        with pytest.raises(InvalidOption, match="priority"):
            await queue.admin.change_priority(ids["a"], -1)


async def test_a_delayed_job_comes_due_at_its_new_time(queue, work, needs):
    async def handle(job):
        return "soon"

    with needs(queue, Feature.EDITS):
        job = await queue.add(1, delay=600)
        await queue.admin.change_delay(job.id, 0.05)
        async with work(handle):
            assert await job.wait(10) == "soon"
        with pytest.raises(WrongState, match="not delayed"):
            await queue.admin.change_delay(job.id, 1)
        with pytest.raises(JobNotFound):
            await queue.admin.change_delay("nobody", 1)
        with pytest.raises(InvalidOption, match="delay"):
            await queue.admin.change_delay(job.id, -1)


async def test_logs_are_cleared_but_for_the_last_lines(queue, work, needs):
    async def handle(job):
        for line in ("1", "2", "3"):
            await job.log(line)

    with needs(queue, Feature.EDITS):
        job = await queue.add(1)
        await queue.admin.clear_logs(job.id)
        async with work(handle):
            await job.wait(10)
        await queue.admin.clear_logs(job.id, keep=2)
        assert await queue.logs(job.id) == ["2", "3"]
        await queue.admin.clear_logs(job.id)
        assert await queue.logs(job.id) == []
        with pytest.raises(JobNotFound):
            await queue.admin.clear_logs("nobody")


async def test_all_failed_jobs_run_again(queue, work, needs, eventually):
    failing = True

    async def handle(job):
        if failing:
            raise Unrecoverable("not yet")

    with needs(queue, Feature.BULK):
        assert await queue.admin.retry_all() == 0
        await queue.add_many([NewJob(n) for n in range(5)])
        async with work(handle, concurrency=5):

            async def all_in(state):
                return (await queue.counts())[state] == 5

            await eventually(lambda: all_in(State.FAILED))
            failing = False
            assert await queue.admin.retry_all() == 5
            await eventually(lambda: all_in(State.COMPLETED))
        assert await queue.admin.retry_all("completed") == 5
        assert (await queue.counts())[State.WAITING] == 5
        with pytest.raises(InvalidOption, match="failed or completed"):
            await queue.admin.retry_all("waiting")


async def test_all_delayed_jobs_become_ready(queue, needs):
    with needs(queue, Feature.BULK):
        assert await queue.admin.promote_all() == 0
        await queue.add_many([NewJob(n, delay=600 + n) for n in range(5)])
        assert await queue.admin.promote_all() == 5
        assert await _order(queue) == [0, 1, 2, 3, 4]


async def test_a_retry_gives_a_job_its_attempts_again_if_so_asked(queue, work, needs, finished):
    runs = []

    async def handle(job):
        runs.append(job.attempts_made)
        raise OSError("no")

    with needs(queue, Feature.EDITS, Feature.ATTEMPTS):
        job = await queue.add(1, attempts=2)
        async with work(handle):
            await finished(queue, job.id)
        await queue.admin.retry(job.id, reset_attempts=True)
        assert (await queue.get(job.id)).attempts_made == 0
        async with work(handle):
            await finished(queue, job.id)
        assert runs == [0, 1, 0, 1]
        await queue.admin.retry(job.id)
        async with work(handle):
            await finished(queue, job.id)
        assert runs == [0, 1, 0, 1, 2]
