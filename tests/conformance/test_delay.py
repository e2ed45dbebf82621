"""Jobs that run later."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from jobwire.boundary import Feature
from jobwire.errors import JobNotFound, WrongState
from jobwire.model import State
from jobwire.options import NewJob


async def test_a_delayed_job_is_not_run_before_its_time(queue, work, eventually):
    started = []

    async def handler(job):
        started.append((job.data, time.time()))

    async with work(handler):
        before = time.time()
        await queue.add("later", delay=0.4)
        await queue.add("now")
        await eventually(lambda: len(started) == 2)
    assert dict(started)["later"] - before >= 0.399


async def test_the_time_to_run_at_is_kept_to_the_millisecond(queue):
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    moments = [first + timedelta(milliseconds=137 * number) for number in range(50)]
    added = await queue.add_many([NewJob(number, run_at=when) for number, when in enumerate(moments)])
    assert [(await queue.get(job.id)).run_at for job in added] == moments


async def test_a_job_with_a_time_to_run_at_is_delayed_until_then(queue):
    when = datetime.now(UTC) + timedelta(hours=1)
    added = await queue.add(1, run_at=when)
    job = await queue.get(added.id)
    assert job.state is State.DELAYED
    assert abs(job.run_at - when) <= timedelta(milliseconds=1)


async def test_a_time_in_the_past_means_now(queue):
    added = await queue.add(1, run_at=datetime.now(UTC) - timedelta(hours=1))
    assert (await queue.get(added.id)).state is State.WAITING


async def test_delayed_jobs_are_listed_by_the_time_they_come_due(queue):
    await queue.add_many([NewJob("c", delay=300), NewJob("a", delay=100), NewJob("b", delay=timedelta(seconds=200))])
    assert [job.data for job in await queue.jobs(State.DELAYED)] == ["a", "b", "c"]


async def test_delayed_jobs_that_come_due_together_keep_their_order(queue, work, eventually):
    seen = []

    async def handler(job):
        seen.append(job.data)

    when = datetime.now(UTC) + timedelta(seconds=0.3)
    await queue.add_many([NewJob(n, run_at=when) for n in range(10)])
    async with work(handler, concurrency=1):
        await eventually(lambda: len(seen) == 10)
    assert seen == list(range(10))


async def test_an_idle_worker_wakes_up_for_a_job_added_with_a_short_delay(queue, work, eventually, no_polling):
    started = []

    async def handler(job):
        started.append(time.monotonic())

    async with work(handler) as worker:
        await queue.add("first")
        await eventually(lambda: worker.stats.completed == 1)
        asked = time.monotonic()
        await queue.add("second", delay=0.2)
        await eventually(lambda: len(started) == 2)
    assert started[1] - asked >= 0.199


async def test_a_promoted_job_is_ready_at_once(queue, needs):
    added = await queue.add(1, delay=3600)
    await queue.admin.promote(added.id)
    assert (await queue.get(added.id)).state is State.WAITING


async def test_only_a_delayed_job_can_be_promoted(queue, needs):
    added = await queue.add(1)
    with pytest.raises(WrongState):
        await queue.admin.promote(added.id)
    with pytest.raises(JobNotFound):
        await queue.admin.promote("no-such-job")


async def test_a_promoted_job_keeps_its_priority(queue, needs):
    with needs(queue, Feature.PRIORITIES):
        urgent, idle = (1, 9) if queue.capabilities.priority == "low_first" else (9, 1)
        await queue.add("idle", priority=idle)
        added = await queue.add("urgent", priority=urgent, delay=3600)
        await queue.admin.promote(added.id)
        assert [job.data for job in await queue.jobs(State.WAITING)] == ["urgent", "idle"]
