"""`app.testing(eager=True)` runs jobs when they are added."""

from __future__ import annotations

import asyncio
import datetime as dt
import os

import pytest

from jobwire import (
    App,
    JobFailed,
    Snooze,
    State,
    by,
)
from tasks.shapes import Line, Order
from tasks.tested_app import (
    app,
    child,
    count_lines,
    fail,
    parent,
    process_id,
    seen,
    ship,
    third_time,
)

pytestmark = pytest.mark.usefixtures("nothing_seen")


async def test_an_eager_add_returns_the_finished_job():
    async with app.testing(eager=True) as t:
        job = await ship.add(Order(1), on=dt.date(2026, 1, 2))
        assert (job.state, job.result, job.attempts_made) == (State.COMPLETED, [Line("box")], 1)
        assert await job.wait(timeout=5) == [Line("box")]
        jobs = await count_lines.add_many([Order(1), Order(2, [Line("a")])])
        assert [(one.state, one.result) for one in jobs] == [(State.COMPLETED, 0), (State.COMPLETED, 1)]
        assert len(t.added(count_lines)) == 2


async def test_an_eager_add_raises_the_error_of_the_task():
    async with app.testing(eager=True) as t:
        with pytest.raises(LookupError, match="broken"):
            await fail.add("broken")
        [job] = t.added(fail)
        assert (job.state, job.error) == (State.FAILED, "broken")
        with pytest.raises(JobFailed):
            await app.queue("fail").wait(job.id, timeout=5)


async def test_eager_jobs_have_their_attempts_without_the_backoff():
    async with app.testing(eager=True):
        job = await third_time.add()
        assert (job.result, job.attempts_made) == (2, 3)
        assert seen == [0, 1, 2]
        with pytest.raises(LookupError, match="not yet"):
            await third_time.options(attempts=2).add()


async def test_eager_jobs_do_not_wait_to_be_due():
    async with app.testing(eager=True):
        assert (await child.options(delay=3600).add(1)).state is State.COMPLETED
    assert seen == [1]


async def test_eager_jobs_add_eager_jobs():
    async with app.testing(eager=True):
        await parent.add(2)
        assert seen == [0, 1]


async def test_eager_jobs_may_be_added_at_the_same_time():
    async with app.testing(eager=True) as t:
        jobs = await asyncio.gather(*(child.add(n) for n in range(20)))
        assert {job.state for job in jobs} == {State.COMPLETED}
        assert len(t.added(child)) == 20


async def test_an_eager_job_that_is_put_off_stays_delayed():
    own = App("memory:")

    @own.task
    async def later() -> int:
        if not seen:
            seen.append("put off")
            raise Snooze(60)
        return 7

    async with own.testing(eager=True) as t:
        job = await later.add()
        assert job.state is State.DELAYED
        await t.run(until=60)
        assert await job.wait(timeout=5) == 7


async def test_a_second_job_of_a_unique_key_is_not_run():
    own = App("memory:")

    @own.task(unique=by("user", for_=3600))
    async def greet(user: int) -> None:
        seen.append(user)

    async with own.testing(eager=True) as t:
        first, second = await greet.add(1), await greet.add(1)
        assert second.id == first.id
        t.clock.advance(3600)
        await greet.add(1)
    assert seen == [1, 1]


async def test_a_queue_without_a_task_keeps_its_jobs():
    async with app.testing(eager=True):
        job = await app.queue("elsewhere").add({"n": 1})
        assert job.state is State.WAITING
        assert "elsewhere" not in app.worker().queues


async def test_tasks_for_child_processes_run_in_this_one_in_both_modes():
    async with app.testing(eager=True):
        assert (await process_id.add()).result == os.getpid()
    async with app.testing() as t:
        job = await process_id.add()
        await t.run()
        assert await job.wait(timeout=5) == os.getpid()
