"""Counts and lists."""

from __future__ import annotations

import pytest

from jobwire.boundary import Feature
from jobwire.errors import InvalidOption
from jobwire.model import State
from jobwire.options import NewJob


async def all_pages(queue, state, limit):
    pages, cursor = [], None
    while True:
        page = await queue.jobs(state, limit=limit, cursor=cursor)
        pages.append([job.data for job in page])
        if page.cursor is None:
            return pages
        cursor = page.cursor


async def test_an_empty_queue_counts_nothing(queue):
    counts = await queue.counts()
    assert {State.WAITING, State.ACTIVE, State.COMPLETED, State.FAILED} <= set(counts)
    assert set(counts.values()) == {0}


async def test_jobs_are_counted_where_they_stand(queue, consume, work, finished):
    async def handler(job):
        if job.data == "bad":
            raise RuntimeError("bad")

    ended = await queue.add_many([NewJob("good"), NewJob("good"), NewJob("bad")])
    async with work(handler):
        for job in ended:
            await finished(queue, job.id)
    await queue.add("held")
    await consume().settle([], claim=1)
    await queue.add_many([NewJob("waits"), NewJob("waits"), NewJob("later", delay=3600)])
    counts = await queue.counts()
    expected = {State.WAITING: 2, State.DELAYED: 1, State.ACTIVE: 1, State.COMPLETED: 2, State.FAILED: 1}
    assert {state: counts[state] for state in expected} == expected
    assert sum(counts.values()) == 7


async def test_prioritised_jobs_are_waiting_jobs(queue, needs):
    with needs(queue, Feature.PRIORITIES):
        await queue.add_many([NewJob(1), NewJob(2, priority=3)])
        assert (await queue.counts())[State.WAITING] == 2
        assert {job.data for job in await queue.jobs(State.WAITING)} == {1, 2}


@pytest.mark.parametrize("limit", [1, 3, 7, 10, 100])
async def test_paging_shows_every_waiting_job_once_and_in_order(queue, limit):
    await queue.add_many([NewJob(n) for n in range(10)])
    pages = await all_pages(queue, State.WAITING, limit)
    assert [data for page in pages for data in page] == list(range(10))
    assert max(len(page) for page in pages) <= limit


async def test_paging_crosses_from_one_priority_to_the_next(queue, needs):
    with needs(queue, Feature.PRIORITIES):
        priorities = (1, 2) if queue.capabilities.priority == "low_first" else (2, 1)
        await queue.add_many([NewJob(n, priority=priorities[n // 4]) for n in range(8)])
        pages = await all_pages(queue, State.WAITING, 3)
        assert [data for page in pages for data in page] == list(range(8))


async def test_paging_shows_delayed_jobs_by_due_time(queue):
    await queue.add_many([NewJob(n, delay=3600 - n) for n in range(7)])
    pages = await all_pages(queue, State.DELAYED, 3)
    assert [data for page in pages for data in page] == [6, 5, 4, 3, 2, 1, 0]


async def test_finished_jobs_are_listed_newest_first(queue, work, eventually):
    async def handler(job):
        return job.data

    async with work(handler, concurrency=1) as worker:
        for n in range(5):
            await queue.add(n)
            await eventually(lambda done=n: worker.stats.completed > done)
    jobs = await queue.jobs(State.COMPLETED, limit=10)
    assert sorted(job.data for job in jobs) == [0, 1, 2, 3, 4]
    ends = [job.finished_at for job in jobs]
    assert ends == sorted(ends, reverse=True)
    assert {job.state for job in jobs} == {State.COMPLETED}


async def test_active_jobs_are_listed_with_their_start(queue, consume):
    await queue.add_many([NewJob(n) for n in range(3)])
    await consume(name="anna").settle([], claim=2)
    jobs = await queue.jobs(State.ACTIVE)
    assert sorted(job.data for job in jobs) == [0, 1]
    assert all(job.started_at is not None for job in jobs)


async def test_an_empty_state_is_an_empty_page(queue):
    page = await queue.jobs(State.FAILED)
    assert (list(page), page.cursor) == ([], None)


async def test_an_unknown_state_is_refused(queue):
    with pytest.raises(InvalidOption, match="state"):
        await queue.jobs("sleeping")


async def test_queues_of_one_store_do_not_see_each_other(queue, connection):
    from jobwire.queue import Queue

    async with Queue("parcels", connection) as other:
        await queue.add(1)
        await other.add_many([NewJob(2), NewJob(3)])
        assert (await queue.counts())[State.WAITING] == 1
        assert [job.data for job in await other.jobs(State.WAITING)] == [2, 3]
        await other.admin.drain()
        assert (await queue.counts())[State.WAITING] == 1
