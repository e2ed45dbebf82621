"""All jobs of a state in one loop, whatever the size of the pages and whatever the loop does to the jobs."""

from __future__ import annotations

import pytest

from jobwire.boundary import Failed, Feature
from jobwire.errors import InvalidOption
from jobwire.model import State
from jobwire.options import NewJob

JOBS = 7


async def add_some(queue, **options):
    return [job.id for job in await queue.add_many([NewJob(n, **options) for n in range(JOBS)])]


async def shown(jobs):
    return [job.id async for job in jobs]


@pytest.mark.parametrize("page_size", [1, 2, 3, JOBS, 100])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
async def test_all_jobs_of_a_state_are_shown_in_the_order_of_a_list(queue, page_size, reverse):
    urgent = {"priority": 1} if queue.capabilities.priority else {}
    await add_some(queue)
    await queue.add_many([NewJob("urgent", **urgent), NewJob("later", delay=3600)])
    expected = [job.id for job in await queue.jobs(State.WAITING, reverse=reverse)]
    assert len(expected) == JOBS + 1
    assert await shown(queue.iter_jobs("waiting", reverse=reverse, page_size=page_size)) == expected


async def test_waiting_jobs_are_shown_unless_another_state_is_asked_for(queue):
    added = await add_some(queue)
    delayed = await queue.add("later", delay=3600)
    assert await shown(queue.iter_jobs()) == added
    assert await shown(queue.iter_jobs(State.DELAYED)) == [delayed.id]
    assert await shown(queue.iter_jobs(State.FAILED)) == []


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
async def test_a_loop_that_removes_the_last_job_of_each_page_sees_every_job_once(queue, reverse):
    added = await add_some(queue)
    seen = []
    async for job in queue.iter_jobs("waiting", reverse=reverse, page_size=2):
        seen.append(job.id)
        if len(seen) % 2 == 0:
            await queue.admin.remove(job.id)
    assert seen == (added[::-1] if reverse else added)
    assert (await queue.counts())[State.WAITING] == JOBS - JOBS // 2


async def test_a_loop_that_retries_failed_jobs_sees_every_job_once(queue, consume):
    added = await add_some(queue)
    consumer = consume()
    for count in (3, JOBS - 3):
        claims = (await consumer.settle([], claim=count)).claims
        await consumer.settle([Failed(claim, "bad", final=True) for claim in claims], claim=0)
    seen = []
    async for job in queue.iter_jobs("failed", page_size=2):
        seen.append(job.id)
        await queue.admin.retry(job.id)
    assert sorted(seen) == sorted(added)
    counts = await queue.counts()
    assert (counts[State.FAILED], counts[State.WAITING]) == (0, JOBS)


async def test_jobs_that_stay_are_shown_once_while_others_come_and_go(queue):
    added = await add_some(queue)
    seen = []
    async for job in queue.iter_jobs("waiting", page_size=3):
        seen.append(job.id)
        if len(seen) == 2:
            await queue.admin.remove(added[0])
            await queue.add("new")
    assert [job_id for job_id in seen if job_id in added] == added


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
async def test_every_job_is_shown_once_although_the_queue_is_paused_and_resumed_meanwhile(queue, needs, reverse):
    with needs(queue, Feature.PAUSE):
        added = await add_some(queue)
        seen = []
        async for job in queue.iter_jobs("waiting", reverse=reverse, page_size=1):
            seen.append(job.id)
            if len(seen) == 2:
                await queue.admin.pause()
            if len(seen) == 4:
                await queue.admin.resume()
        assert seen == (added[::-1] if reverse else added)


async def test_a_shown_job_can_be_waited_for(queue, work):
    await add_some(queue)

    async def handler(job):
        return job.data

    jobs = [job async for job in queue.iter_jobs(page_size=3)]
    async with work(handler):
        for job in jobs:
            await job.wait(20)
    assert len(await shown(queue.iter_jobs("completed", page_size=3))) == JOBS


@pytest.mark.parametrize(
    ("field", "bad"),
    [("page_size", 0), ("page_size", 2.0), ("page_size", None), ("reverse", 1), ("state", "sleeping")],
)
async def test_bad_arguments_are_refused_before_anything_is_shown(queue, field, bad):
    await add_some(queue)
    with pytest.raises(InvalidOption) as refusal:
        await anext(queue.iter_jobs(**{field: bad}))
    assert (refusal.value.field, refusal.value.value) == (field, bad)
