"""How many finished jobs stay."""

from __future__ import annotations

import asyncio

import pytest

from jobwire.boundary import Feature
from jobwire.errors import WaitTimeout
from jobwire.model import State
from jobwire.options import Keep, NewJob


async def handler(job):
    if job.data == "bad":
        raise RuntimeError("bad")
    return job.data


async def run(queue, work, eventually, jobs, **options):
    async with work(handler, concurrency=1, **options) as worker:
        await queue.add_many(jobs)
        await eventually(lambda: worker.stats.completed + worker.stats.failed == len(jobs))
    return await queue.counts()


async def test_finished_jobs_stay_unless_told_otherwise(queue, work, eventually):
    counts = await run(queue, work, eventually, [NewJob(1), NewJob("bad")])
    assert (counts[State.COMPLETED], counts[State.FAILED]) == (1, 1)


async def test_a_job_that_is_not_to_be_kept_leaves_nothing(queue, work, eventually, needs):
    with needs(queue, Feature.KEEP):
        jobs = [NewJob(1, keep_completed=Keep.NONE), NewJob("bad", keep_failed=Keep.NONE)]
        counts = await run(queue, work, eventually, jobs)
        assert sum(counts.values()) == 0


@pytest.mark.parametrize("keep", [2, Keep(count=2), Keep(count=2, age=3600)])
async def test_only_the_newest_are_kept(queue, work, eventually, needs, keep):
    with needs(queue, Feature.KEEP):
        counts = await run(queue, work, eventually, [NewJob(n, keep_completed=keep) for n in range(5)])
        assert counts[State.COMPLETED] == 2
        assert sorted(job.data for job in await queue.jobs(State.COMPLETED)) == [3, 4]


async def test_jobs_older_than_their_age_go_when_another_finishes(queue, work, eventually, needs):
    with needs(queue, Feature.KEEP):
        await run(queue, work, eventually, [NewJob("old")])
        counts = await run(queue, work, eventually, [NewJob("new", keep_completed=Keep(age=0))])
        assert counts[State.COMPLETED] == 0


async def test_a_worker_has_a_rule_for_jobs_without_one(queue, work, eventually, needs):
    with needs(queue, Feature.KEEP):
        jobs = [NewJob(1), NewJob(2, keep_completed=Keep.ALL), NewJob(3)]
        counts = await run(queue, work, eventually, jobs, keep_completed=1)
        assert counts[State.COMPLETED] == 1


async def test_the_result_of_a_job_that_is_not_kept_still_reaches_who_waits(queue, work, needs, eventually):
    with needs(queue, Feature.KEEP, Feature.RESULTS, Feature.EVENTS):
        listening = asyncio.Event()

        async def after_all_listen(job):
            await listening.wait()
            return job.data

        added = await queue.add(5, keep_completed=Keep.NONE)
        waiting = asyncio.create_task(added.wait(timeout=20))
        await eventually(lambda: queue._result_waits._waiting)
        async with work(after_all_listen):
            # A second caller that gives up was listening for a while, and the first one came before it.
            with pytest.raises(WaitTimeout):
                await added.wait(timeout=0.2)
            listening.set()
            assert await waiting == 5


async def test_a_job_that_finishes_and_goes_while_it_is_looked_up_is_found_by_its_event(
    queue, work, needs, eventually, monkeypatch
):
    with needs(queue, Feature.KEEP, Feature.RESULTS, Feature.EVENTS):
        added = await queue.add(5, keep_completed=Keep.NONE)
        backend, looked = queue.connection.backend, asyncio.Event()
        get, events = backend.get, backend.events.events

        async def get_when_it_is_gone(name, ids):
            async with work(handler) as worker:
                await eventually(lambda: worker.stats.completed == 1)
            found = await get(name, ids)
            asyncio.get_running_loop().call_soon(looked.set)
            return found

        async def events_after_the_look(name, since):
            await looked.wait()
            async for event in events(name, since):
                yield event

        monkeypatch.setattr(backend, "get", get_when_it_is_gone)
        monkeypatch.setattr(backend.events, "events", events_after_the_look)
        assert await added.wait(timeout=20) == 5
