"""What an operator can do to one job."""

from __future__ import annotations

import pytest

from jobwire.boundary import Completed, Feature
from jobwire.errors import JobNotFound, WrongState
from jobwire.model import State


class Flaky:
    """A handler that fails until it is mended."""

    def __init__(self) -> None:
        self.mended = False

    async def __call__(self, job):
        if not self.mended:
            raise RuntimeError("broken")
        return "fine"


async def test_a_removed_job_is_gone_with_all_that_belongs_to_it(queue):
    added = await queue.add(1)
    await queue.admin.remove(added.id)
    assert await queue.get(added.id) is None
    assert sum((await queue.counts()).values()) == 0


async def test_jobs_are_removed_from_wherever_they_stand(queue, work, finished):
    delayed = await queue.add(1, delay=3600)
    done = await queue.add(2)
    async with work(lambda job: None):
        await finished(queue, done.id)
    for job in (delayed, done):
        await queue.admin.remove(job.id)
    assert sum((await queue.counts()).values()) == 0


async def test_a_job_that_a_worker_runs_can_not_be_removed(queue, consume):
    added = await queue.add(1)
    consumer = consume()
    [claim] = (await consumer.settle([], claim=1)).claims
    with pytest.raises(WrongState):
        await queue.admin.remove(added.id)
    await consumer.settle([Completed(claim, b"null")], claim=0)
    await queue.admin.remove(added.id)
    assert await queue.get(added.id) is None


async def test_removing_or_retrying_what_is_not_there_says_so(queue):
    with pytest.raises(JobNotFound):
        await queue.admin.remove("no-such-job")
    with pytest.raises(JobNotFound):
        await queue.admin.retry("no-such-job")


async def test_the_log_goes_with_the_removed_job(queue, work, finished, needs, id_for):
    order = id_for(queue, "order-17")
    with needs(queue, Feature.LOGS):

        async def handler(job):
            await job.log("a line")

        await queue.add(1, id=order)
        async with work(handler):
            await finished(queue, order)
        await queue.admin.remove(order)
        await queue.add(2, id=order)
        assert list(await queue.logs(order)) == []


async def test_a_failed_job_can_be_run_again(queue, work, finished, eventually):
    handler = Flaky()
    added = await queue.add(1)
    async with work(handler):
        assert (await finished(queue, added.id)).state is State.FAILED
        handler.mended = True
        await queue.admin.retry(added.id)

        async def completed():
            job = await queue.get(added.id)
            return job if job.state is State.COMPLETED else None

        job = await eventually(completed)
    assert job.result == "fine"


async def test_a_retried_job_waits_and_shows_no_end(queue, work, finished):
    added = await queue.add(1)
    async with work(Flaky()):
        await finished(queue, added.id)
    await queue.admin.retry(added.id)
    job = await queue.get(added.id)
    assert (job.state, job.finished_at) == (State.WAITING, None)


async def test_a_completed_job_can_be_run_again(queue, work, finished, eventually):
    runs = []
    added = await queue.add(1)

    async def handler(job):
        runs.append(job.id)

    async with work(handler):
        await finished(queue, added.id)
        await queue.admin.retry(added.id)
        await eventually(lambda: len(runs) == 2)


async def test_a_waiting_job_can_not_be_retried(queue):
    added = await queue.add(1)
    with pytest.raises(WrongState):
        await queue.admin.retry(added.id)


async def test_a_cancelled_job_is_kept_and_never_run(queue, consume, needs):
    with needs(queue, Feature.CANCEL):
        waiting = await queue.add(1)
        delayed = await queue.add(2, delay=3600)
        await queue.cancel(waiting.id)
        await queue.cancel(delayed.id)
        assert (await queue.get(waiting.id)).state is State.CANCELLED
        assert {job.data for job in await queue.jobs(State.CANCELLED)} == {1, 2}
        assert list((await consume().settle([], claim=5)).claims) == []


async def test_a_finished_job_can_not_be_cancelled(queue, work, finished, needs):
    with needs(queue, Feature.CANCEL):
        added = await queue.add(1)
        async with work(lambda job: None):
            await finished(queue, added.id)
        with pytest.raises(WrongState):
            await queue.cancel(added.id)
        with pytest.raises(JobNotFound):
            await queue.cancel("no-such-job")
