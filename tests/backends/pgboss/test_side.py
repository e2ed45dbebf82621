"""What pg-boss lacks, kept in a schema beside its own."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest

from awaiting import eventually
from jobwire import AddStatus, InvalidOption, Rate, State, Worker
from jobwire.native import PgBossWorker
from jobwire.options import NewJob


async def test_the_side_schema_is_made_when_it_is_needed_and_not_before(queue, rows, unique):
    look = "SELECT to_regnamespace(%s) IS NOT NULL AS there"
    await queue.add(1)
    assert await rows(look, f"{unique}_jobwire") == [{"there": False}]
    await queue.admin.pause()
    assert await rows(look, f"{unique}_jobwire") == [{"there": True}]


async def test_nothing_of_ours_is_in_pg_boss_s_own_schema(queue, work, rows, unique):
    tables = "SELECT count(*) AS n FROM pg_class WHERE relnamespace = %s::regnamespace"
    before = await rows(tables, unique)

    async def handler(job):
        await job.update_progress(1)
        await job.log("line")

    added = await queue.add(1)
    async with work(handler, rate=Rate(5, per=1)):
        await added.wait(timeout=20)
    assert await rows(tables, unique) == before


async def test_a_reader_sees_progress_though_it_came_before_the_side_schema(queue, url):
    added = await queue.add(1)
    assert (await queue.get(added.id)).progress is None

    async def handler(job):
        await job.update_progress(50)

    async with Worker(queue.name, handler, url) as worker:
        await eventually(lambda: worker.stats.completed)
    assert (await queue.get(added.id)).progress == 50
    assert [job.progress for job in await queue.jobs(state=State.COMPLETED)] == [50]


async def test_a_rate_per_key_delays_that_key_alone(queue, work):
    starts: list[tuple[str, float]] = []

    async def handler(job):
        starts.append((job.data, time.monotonic()))

    keys = ["slow"] * 4 + ["other"]
    await queue.add_many([NewJob(key, extra={"singletonKey": key}) for key in keys])
    began = time.monotonic()
    async with work(handler, concurrency=5, native=PgBossWorker(key_rate=Rate(2, per=0.6))) as worker:
        await eventually(lambda: worker.stats.completed == 5)
    times = [at - began for key, at in starts if key == "slow"]
    assert Counter(key for key, _ in starts) == {"slow": 4, "other": 1}
    assert times[2] - times[0] >= 0.55, times
    assert dict(starts)["other"] - began < times[2]


async def test_a_rate_per_group_is_shared_by_workers(queue, work):
    starts: list[float] = []

    async def handler(job):
        starts.append(time.monotonic())

    await queue.add_many([NewJob(n, extra={"group": {"id": "g"}}) for n in range(4)])
    native = PgBossWorker(key_rate=Rate(2, per=0.6), key_rate_by="group")
    async with work(handler, concurrency=3, native=native), work(handler, concurrency=3, native=native):
        await eventually(lambda: len(starts) == 4)
    assert starts[2] - starts[0] >= 0.55, starts


async def test_no_more_jobs_of_a_group_run_at_once_than_allowed(queue, work):
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def handler(job):
        group = job.data
        running[group] += 1
        most[group] = max(most[group], running[group])
        await asyncio.sleep(0.02)
        running[group] -= 1

    jobs = [NewJob(g, extra={"group": {"id": g, "tier": "gold" if g == "a" else "tin"}}) for g in "aabb" * 5]
    await queue.add_many(jobs)
    limits = {"default": 1, "tiers": {"gold": 2}}
    async with work(handler, concurrency=10, native=PgBossWorker(group_concurrency=limits)) as worker:
        await eventually(lambda: worker.stats.completed == 20)
    assert most == {"a": 2, "b": 1}


async def test_a_worker_may_take_certain_priorities_only(queue, work):
    seen = []

    async def handler(job):
        seen.append(job.data)

    await queue.add_many([NewJob(n, priority=n) for n in range(6)])
    async with work(handler, native=PgBossWorker(min_priority=2, max_priority=4)) as worker:
        await eventually(lambda: worker.stats.completed == 3)
    assert seen == [4, 3, 2]
    assert (await queue.counts())[State.WAITING] == 3


async def test_two_workers_that_claim_at_once_keep_to_the_limit_of_a_group(queue, consume, database, rows, unique):
    """The first claim is held up at its commit; the second sees a job of higher priority that the first did not."""
    await database.execute(
        "CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NULL; END $$"
    )
    await database.execute(
        "CREATE CONSTRAINT TRIGGER held AFTER UPDATE ON job_common DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION hold_up()"
    )

    async def held_up():
        return await rows(
            "SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory' AND position(%s in query) > 0", unique
        )

    group = {"group": {"id": "g"}}
    native = PgBossWorker(group_concurrency=2)
    first, second = consume(native=native), consume(native=native)
    await asyncio.gather(first.settle([], 1), second.settle([], 1))
    await queue.add_many([NewJob(n, extra=group) for n in range(3)])
    await database.execute("SELECT pg_advisory_lock(4711)")
    one = asyncio.create_task(first.settle([], 5))
    await eventually(lambda: _number_of(held_up, 1))
    await queue.add("urgent", priority=9, extra=group)
    other = asyncio.create_task(second.settle([], 5))
    await eventually(lambda: _number_of(held_up, 2))
    await database.execute("SELECT pg_advisory_unlock(4711)")
    claims = [*(await one).claims, *(await other).claims]
    assert [claim.job.data for claim in claims] == [0, 1]


async def _number_of(look, count):
    return len(await look()) == count


@pytest.mark.parametrize(
    ("options", "field"),
    [({"group_concurency": 2}, "group_concurency"), ({"group_concurrency": 0}, "group_concurrency"),
     ({"key_rate": 3}, "key_rate"), ({"key_rate_by": "shoe size"}, "key_rate_by"), ({"poll": 0}, "poll"),
     ({"supervise": "yes"}, "supervise"), ({"group_concurrency": {"tiers": {}}}, "group_concurrency")],
)  # fmt: skip
def test_an_option_of_a_worker_that_makes_no_sense_is_refused(options, field):
    with pytest.raises(InvalidOption) as refusal:
        PgBossWorker(**options)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"extra": {"id": "order-17"}}, "extra.id"),
        ({"extra": {"singletonSeconds": 0}}, "extra.singletonSeconds"),
        ({"extra": {"heartbeatSeconds": 5}}, "extra.heartbeatSeconds"),
        ({"extra": {"group": "g"}}, "extra.group"),
        ({"extra": {"expireInMinutes": 5}}, "extra.expireInMinutes"),
        ({"timeout": 90_000}, "timeout"),
        ({"extra": {"retryDelayMax": 5}}, "extra.retryDelayMax"),
        ({"extra": {"deadLetter": "no spaces"}}, "extra.deadLetter"),
    ],
)
async def test_an_option_of_a_job_that_pg_boss_would_ignore_or_refuse_is_refused(queue, options, field):
    with pytest.raises(InvalidOption) as refusal:
        await queue.add(1, **options)
    assert refusal.value.field == field


async def test_an_id_of_the_callers_own_is_a_uuid(queue):
    mine = "6f1c2b9e-1f6e-4a53-9d0e-0a4d5c6b7a80"
    assert (await queue.add(1, id=mine)).id == mine
    again = await queue.add(2, id=mine)
    assert (again.id, again.add_status) == (mine, AddStatus.DUPLICATE)


async def test_the_second_of_an_id_in_one_call_is_told_as_a_duplicate(queue):
    mine = "6f1c2b9e-1f6e-4a53-9d0e-0a4d5c6b7a80"
    added = await queue.add_many([NewJob(n, id=one) for n, one in enumerate([mine, mine.upper()])])
    assert [(job.id, job.add_status) for job in added] == [(mine, AddStatus.ADDED), (mine, AddStatus.DUPLICATE)]
    found = await queue.get(mine)
    assert found is not None
    assert found.data == 0
