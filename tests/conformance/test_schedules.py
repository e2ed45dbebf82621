"""Jobs that repeat."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from jobwire.boundary import Feature
from jobwire.cron import Cron
from jobwire.errors import InvalidOption, NotSupported
from jobwire.model import State


async def test_a_schedule_makes_one_job_per_interval(queue, work, eventually, needs):
    runs = []

    async def handler(job):
        runs.append(job.data)

    with needs(queue, Feature.SCHEDULE_EVERY):
        await queue.schedule("pulse", every=0.1, data={"beat": True})
        async with work(handler):
            await eventually(lambda: len(runs) >= 4)
        assert runs[:4] == [{"beat": True}] * 4


async def test_a_schedule_reads_back_as_it_was_made(queue, needs):
    with needs(queue, Feature.SCHEDULE_EVERY):
        made = await queue.schedule("pulse", every=3600, data=[1, 2])
        [read] = await queue.schedules()
        assert (read.key, read.queue, read.every, read.cron, read.data) == ("pulse", queue.name, 3600, None, [1, 2])
        assert (read.key, read.next_run) == (made.key, made.next_run)


async def test_a_schedule_stops_after_its_limit(queue, work, eventually, needs):
    runs = []

    async def handler(job):
        runs.append(job.id)

    with needs(queue, Feature.SCHEDULE_EVERY, Feature.SCHEDULE_LIMIT):
        await queue.schedule("pulse", every=0.1, limit=3)
        async with work(handler) as worker:
            await eventually(lambda: worker.stats.completed == 3)
            counts = await queue.counts()
        assert counts[State.DELAYED] + counts[State.WAITING] == 0
        assert len(set(runs)) == 3


async def test_a_cron_schedule_is_due_at_the_next_time_in_its_zone(queue, needs):
    with needs(queue, Feature.SCHEDULE_CRON, Feature.SCHEDULE_TZ):
        before = datetime.now(UTC)
        await queue.schedule("daily", cron="30 4 * * *", tz="America/New_York")
        [read] = await queue.schedules()
        assert (read.cron, read.tz) == ("30 4 * * *", "America/New_York")
        assert read.next_run == Cron.parse("30 4 * * *").next_after(before, "America/New_York")


async def test_a_cron_schedule_fires(queue, work, eventually, needs):
    with needs(queue, Feature.SCHEDULE_CRON):
        fired = asyncio.Event()

        async def handler(job):
            fired.set()

        await queue.schedule("tick", cron="* * * * * *")
        async with work(handler):
            await asyncio.wait_for(fired.wait(), 20)


async def test_a_schedule_of_the_same_key_replaces_the_first(queue, needs):
    with needs(queue, Feature.SCHEDULE_CRON):
        await queue.schedule("daily", cron="0 9 * * *", data="old")
        await queue.schedule("daily", cron="0 10 * * *", data="new")
        [read] = await queue.schedules()
        assert (read.cron, read.data) == ("0 10 * * *", "new")
        counts = await queue.counts()
        assert counts[State.DELAYED] + counts[State.WAITING] <= 1


async def test_a_schedule_that_is_stopped_makes_no_more_jobs(queue, work, eventually, needs):
    with needs(queue, Feature.SCHEDULE_EVERY):
        runs = []

        async def handler(job):
            runs.append(job.id)

        await queue.schedule("pulse", every=0.1)
        async with work(handler):
            await eventually(lambda: len(runs) >= 2)
            assert await queue.unschedule("pulse") is True

            async def nothing_ahead():
                counts = await queue.counts()
                return counts[State.DELAYED] + counts[State.WAITING] + counts[State.ACTIVE] == 0

            await eventually(nothing_ahead)
        assert list(await queue.schedules()) == []


async def test_stopping_a_schedule_takes_back_the_job_it_had_ahead(queue, needs):
    with needs(queue, Feature.SCHEDULE_CRON):
        await queue.schedule("daily", cron="0 9 * * *")
        assert await queue.unschedule("daily") is True
        assert sum((await queue.counts()).values()) == 0


async def test_stopping_a_schedule_that_is_not_there_answers_false(queue, needs):
    with needs(queue, Feature.SCHEDULES):
        assert await queue.unschedule("no-such-schedule") is False


async def test_schedules_carry_the_options_of_their_jobs(queue, consume, needs):
    with needs(queue, Feature.SCHEDULE_EVERY, Feature.JOB_NAMES, Feature.ATTEMPTS):
        await queue.schedule("pulse", every=3600, name="heartbeat", attempts=4)
        [claim] = (await consume().settle([], claim=1)).claims
        assert (claim.job.name, claim.job.attempts) == ("heartbeat", 4)


async def test_a_schedule_waits_for_its_start(queue, needs):
    with needs(queue, Feature.SCHEDULE_EVERY, Feature.SCHEDULE_WINDOW):
        start = datetime.now(UTC) + timedelta(hours=2)
        await queue.schedule("pulse", every=60, start_at=start)
        [read] = await queue.schedules()
        assert read.next_run >= start - timedelta(milliseconds=1)
        assert (await queue.counts())[State.DELAYED] == 1


async def test_draining_does_not_stop_a_schedule(queue, work, eventually, needs):
    with needs(queue, Feature.SCHEDULE_EVERY, Feature.SCHEDULE_WINDOW):
        await queue.schedule("soon", every=0.1, data="soon")
        start = datetime.now(UTC) + timedelta(seconds=0.3)
        await queue.schedule("later", every=0.1, start_at=start, data="later")
        await queue.add("drained")
        await queue.admin.drain(delayed=True)
        seen = []

        async def handler(job):
            seen.append(job.data)

        async with work(handler):
            await eventually(lambda: min(seen.count("soon"), seen.count("later")) >= 2)
        assert "drained" not in seen


async def test_obliterating_the_queue_ends_its_schedules(queue, needs):
    with needs(queue, Feature.SCHEDULE_CRON):
        await queue.schedule("daily", cron="0 9 * * *")
        await queue.admin.obliterate()
        assert list(await queue.schedules()) == []
        assert sum((await queue.counts()).values()) == 0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "* * *  * * * * *"}, "cron"),
        ({"cron": "0 9 * * *", "tz": "Mars/Olympus"}, "tz"),
        ({}, "every"),
        ({"every": 1, "cron": "* * * * *"}, "every"),
        ({"every": 0}, "every"),
        ({"every": 1, "id": "order-17"}, "id"),
        ({"every": 1, "delay": 5}, "delay"),
    ],
)
async def test_a_schedule_that_makes_no_sense_is_refused_before_anything_is_written(queue, needs, options, field):
    with needs(queue, Feature.SCHEDULES):
        with pytest.raises((InvalidOption, NotSupported)) as refusal:
            await queue.schedule("odd", **options)
        if isinstance(refusal.value, InvalidOption):  # else the protocol lacks one of the options altogether
            assert refusal.value.field == field
        assert list(await queue.schedules()) == []
        assert sum((await queue.counts()).values()) == 0
