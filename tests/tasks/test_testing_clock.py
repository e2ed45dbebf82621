"""The clock of `app.testing()` can be moved on."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import pytest

from jobwire import (
    InvalidOption,
)
from jobwire.testing import Clock, assert_added
from tasks.tested_app import (
    app,
    child,
    seen,
    third_time,
)

pytestmark = pytest.mark.usefixtures("nothing_seen")


async def test_delayed_jobs_become_due_when_the_clock_is_moved():
    async with app.testing() as t:
        await child.options(delay=3600).add(1)
        assert (await t.run()).completed == 0
        t.clock.advance(dt.timedelta(minutes=59))
        assert (await t.run()).completed == 0
        t.clock.advance(60)
        assert (await t.run()).completed == 1


async def test_a_worker_that_waits_notices_that_the_clock_was_moved(eventually_seen):
    async with app.testing() as t, app.worker():
        await child.options(delay=3600).add(1)
        await child.add(0)
        await eventually_seen([0])
        t.clock.advance(3600)
        await eventually_seen([0, 1])


@pytest.fixture
def eventually_seen() -> Any:
    async def wait(expected: list[Any]) -> None:
        async with asyncio.timeout(4):  # less than the longest wait of an idle worker
            while seen != expected:
                await asyncio.sleep(0.01)

    return wait


async def test_next_attempts_follow_their_backoff():
    async with app.testing() as t:
        job = await third_time.add()
        began = t.clock.now()
        ran = await t.run()
        assert (ran.retried, ran.completed) == (1, 0)
        ran = await t.run(until=7200.5)
        assert (ran.retried, ran.completed) == (1, 1)
        assert await job.wait(timeout=5) == 2
        assert dt.timedelta(seconds=7200.5) <= t.clock.now() - began


async def test_schedules_run_at_their_times():
    clock = Clock(dt.datetime(2026, 12, 24, 22, 30, tzinfo=dt.UTC))
    async with app.testing(clock=clock) as t:
        await child.schedule("hourly", cron="0 * * * *", tz="UTC", arguments={"n": 24})
        assert (await t.run(until=dt.datetime(2026, 12, 25, 2, 0, tzinfo=dt.UTC))).completed == 4
        assert clock.now() >= dt.datetime(2026, 12, 25, 2, tzinfo=dt.UTC)
        assert_added(child, count=0)


async def test_jobs_of_different_times_run_in_their_order():
    async with app.testing() as t:
        for n in (3, 1, 2):
            await child.options(delay=n * 1000).add(n)
        await t.run(until=dt.timedelta(seconds=2500))
        assert seen == [1, 2]
        await t.run(until=1000)
        assert seen == [1, 2, 3]


async def test_the_clock_only_goes_forward():
    with pytest.raises(InvalidOption, match="by: must be at least 0 s"):
        Clock().advance(-1)
    with pytest.raises(InvalidOption, match="must have a time zone"):
        Clock(dt.datetime(2026, 1, 1))  # noqa: DTZ001
    clock = Clock(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    clock.advance_to(dt.datetime(2025, 1, 1, tzinfo=dt.UTC))
    assert clock.now() >= dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
