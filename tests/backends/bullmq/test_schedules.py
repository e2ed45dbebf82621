"""Repeating jobs: stored as Node stores them, and carried on whoever picks their jobs up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from jobwire import Keep, codec
from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Acted, Backend, Claim, Completed, ConsumerSettings, PreparedJob
from jobwire.errors import InvalidOption
from jobwire.model import Schedule, State
from jobwire.options import NewJob, NewSchedule

QUEUE = "const q = queueOf(p);"
MONTH = 30 * 86_400
"""Between moments of schedules that are compared with Node's: ours and theirs must not fall into two intervals."""


async def put(backend: Backend, key: str, data: Any = None, name: str = "tick", **options: Any) -> Schedule:
    template = NewJob({} if data is None else data, name, **options.pop("job", {}))
    prepared = PreparedJob(template, name, codec.dumps(template.data))
    return await backend.schedules.schedule("q", NewSchedule(key, template, **options), prepared)


def soon(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def claim_and_complete(backend: Backend, times: int = 1) -> list[Claim]:
    """Work the queue one job at a time; like Node, each completion asks for the next job."""
    consumer = backend.consumer(ConsumerSettings("q", "worker-1"))
    done: list[Claim] = []
    claims = (await consumer.settle([], 1)).claims
    try:
        while len(done) < times:
            if not claims:
                await consumer.wait(1.0)
                claims = (await consumer.settle([], 1)).claims
            for claim in claims:
                done.append(claim)
                claims = (await consumer.settle([Completed(claim, b"1")], 1)).claims
    finally:
        await consumer.close()
    return done


PUTS = {
    "every": ('{ every: 2592000000 }, { name: "tick" }', lambda b: put(b, "s", every=MONTH)),
    "every with everything": (
        """{ every: 2592000000, limit: 3, startDate: Date.now() + 20000, endDate: Date.now() + 1e7 },
           { name: "tick", data: { t: 1 }, opts: { priority: 2, attempts: 3, removeOnComplete: true } }""",
        lambda b: put(
            b,
            "s",
            {"t": 1},
            every=MONTH,
            limit=3,
            start_at=soon(20),
            end_at=soon(10_000),
            job={"priority": 2, "attempts": 3, "keep_completed": Keep.NONE},
        ),
    ),
    "every, started in the past": (
        '{ every: 2592000000, startDate: Date.now() - 20000 }, { name: "tick" }',
        lambda b: put(b, "s", every=MONTH, start_at=soon(-20)),
    ),
    "cron": (
        '{ pattern: "0 0 0 1 1 *", tz: "Europe/Paris" }, { name: "tick", data: [1] }',
        lambda b: put(b, "s", [1], cron="0 0 0 1 1 *", tz="Europe/Paris"),
    ),
    "cron, immediately": (
        '{ pattern: "0 0 0 1 1 *", tz: "UTC", immediately: true }, { name: "tick" }',
        lambda b: put(b, "s", cron="0 0 0 1 1 *", immediately=True),
    ),
    "cron from a start": (
        '{ pattern: "* * * * * *", tz: "UTC", startDate: Date.now() + 100000 }, { name: "tick" }',
        lambda b: put(b, "s", cron="* * * * * *", start_at=soon(100)),
    ),
}


@pytest.mark.parametrize("case", PUTS)
@pytest.mark.parametrize("again", [False, True], ids=["once", "again"])
@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
async def test_a_schedule_is_stored_as_node_stores_it(case: str, again: bool, paused: bool, same_as_node) -> None:
    theirs, ours = PUTS[case]
    arrange = QUEUE + (f'await q.upsertJobScheduler("s", {theirs});' if again else "")
    arrange += "await q.pause();" if paused else ""
    await same_as_node(arrange, f'{QUEUE} await q.upsertJobScheduler("s", {theirs});', ours)


DROPS = {
    "a delayed job": 'await q.upsertJobScheduler("s", { every: 2592000000, startDate: Date.now() + 20000 });',
    "a job in line": 'await q.upsertJobScheduler("s", { every: 2592000000 });',
    "nothing": "",
    "an old repeat job": 'await q.add("n", {}, { repeat: { every: 2592000000, key: "s" } });',
}


@pytest.mark.parametrize("case", DROPS)
async def test_a_schedule_is_dropped_as_node_drops_it(case: str, same_as_node) -> None:
    await same_as_node(
        QUEUE + DROPS[case], f'{QUEUE} await q.removeJobScheduler("s");', lambda b: b.schedules.unschedule("q", "s")
    )


async def test_a_repeat_job_of_bullmq_4_is_dropped_as_node_drops_it(same_as_node) -> None:
    arrange = """
    const q = queueOf(p), c = await q.client, at = Math.ceil(Date.now() / 60000) * 60000, key = "leg::::60000";
    const id = `repeat:e4dbf1d8b99a72602eae97b5991635b8:${at}`;
    const opts = { repeat: { every: 60000, count: 1 }, jobId: id };
    await c.zadd(`${p}:q:repeat`, at, key); await c.zadd(`${p}:q:delayed`, at * 4096, id);
    await c.hset(`${p}:q:${id}`, "name", "leg", "data", "{}", "opts", JSON.stringify(opts), "timestamp", 1,
      "delay", 0, "priority", 0, "rjk", key);
    """
    drop = f'{QUEUE} await q.removeRepeatableByKey("leg::::60000");'
    await same_as_node(arrange, drop, lambda b: b.schedules.unschedule("q", "leg::::60000"))


ADVANCES = {
    "every": 'await q.upsertJobScheduler("s", { every: 2592000000 }, { name: "n", data: { a: 1 } });',
    "every, with a backoff in short form": """
        const opts = { backoff: 500, attempts: 2, priority: 4 };
        await q.upsertJobScheduler("s", { every: 2592000000 }, { name: "n", opts });
    """,
    "cron": """
        await q.upsertJobScheduler("s", { pattern: "0 0 0 1 1 *", tz: "UTC", immediately: true }, { name: "n" });
    """,
    "cron with an end": """
        const rule = { pattern: "0 0 0 1 1 *", endDate: Date.now() + 1e11, tz: "UTC" };
        await (await q.upsertJobScheduler("s", rule, { name: "n" })).promote();
    """,
    "limit reached": 'await q.upsertJobScheduler("s", { every: 2592000000, limit: 1 }, { name: "n" });',
    "after a gap": """
        await q.upsertJobScheduler("s", { every: 2592000000 }, { name: "n" });
        const c = await q.client, at = Number(await c.zscore(`${p}:q:repeat`, "s")), old = at - 8856000000;
        await c.rename(`${p}:q:repeat:s:${at}`, `${p}:q:repeat:s:${old}`);
        await c.zadd(`${p}:q:repeat`, old, "s");
        await c.del(`${p}:q:wait`); await c.lpush(`${p}:q:wait`, `repeat:s:${old}`);
    """,
    "next job there already": """
        await q.upsertJobScheduler("s", { every: 2592000000 }, { name: "n" });
        const c = await q.client, at = Number(await c.zscore(`${p}:q:repeat`, "s"));
        await c.hset(`${p}:q:repeat:s:${at + 2592000000}`, "name", "x", "timestamp", 1);
    """,
    "schedule dropped meanwhile": """
        await q.upsertJobScheduler("s", { every: 2592000000 }, { name: "n" }); await q.removeJobScheduler("s");
    """,
    "repeat job of BullMQ 5, every": """
        await (await q.add("old", { x: 1 }, { repeat: { every: 2592000000, limit: 5 } })).promote();
    """,
    "repeat job of BullMQ 5, cron": """
        const repeat = { pattern: "0 0 0 1 1 *", tz: "Europe/Paris" };
        await (await q.add("old", { x: 1 }, { repeat, attempts: 3 })).promote();
    """,
    "repeat job of BullMQ 4": """
        const c = await q.client, at = Math.floor(Date.now() / 60000) * 60000, key = "leg::::60000";
        const id = `repeat:e4dbf1d8b99a72602eae97b5991635b8:${at}`;
        await c.zadd(`${p}:q:repeat`, at, key); await c.lpush(`${p}:q:wait`, id);
        const repeat = { every: 60000, count: 1 };
        const opts = { attempts: 0, repeat, jobId: id, delay: 0, timestamp: at, prevMillis: at };
        await c.hset(`${p}:q:${id}`, "name", "leg", "data", "{}", "opts", JSON.stringify(opts), "timestamp", at,
          "delay", 0, "priority", 0, "rjk", key);
    """,
}


@pytest.mark.parametrize("case", ADVANCES)
async def test_picking_up_a_scheduled_job_makes_the_next_one_as_node_makes_it(case: str, same_as_node) -> None:
    async def ours(backend: Backend) -> None:
        await claim_and_complete(backend)

    await same_as_node(
        QUEUE + ADVANCES[case],
        "await work(p, 1, async () => 1); await (await queueOf(p).client).del(`${p}:q:stalled-check`);",
        ours,
    )


async def test_a_schedule_goes_on_for_as_long_as_its_limit_says(redis: Redis, keys: Keys, backend: Backend) -> None:
    await put(backend, "beat", every=0.02, limit=4)

    claims = await claim_and_complete(backend, times=4)

    moments = [int(claim.job.id.rsplit(":", 1)[1]) for claim in claims]
    assert moments == sorted(set(moments))
    assert all(moment % 20 == moments[0] % 20 for moment in moments)
    assert (await backend.counts("q"))[State.DELAYED] == 0
    assert [schedule.runs for schedule in await backend.schedules.schedules("q")] == [4]


async def test_a_job_that_is_picked_up_twice_makes_one_next_job(redis: Redis, keys: Keys, backend: Backend) -> None:
    await put(backend, "s", every=60)
    consumer = backend.consumer(ConsumerSettings("q", "worker-1"))
    [claim] = (await consumer.settle([], 1)).claims
    delayed = await redis.zrange(keys.delayed, 0, -1)
    await redis.lrem(keys.active, 0, claim.job.id)
    await redis.rpush(keys.wait, claim.job.id)

    [again] = (await consumer.settle([], 1)).claims
    await consumer.close()

    assert again.job.id == claim.job.id
    assert await redis.zrange(keys.delayed, 0, -1) == delayed
    assert [schedule.runs for schedule in await backend.schedules.schedules("q")] == [2]


async def test_a_broken_schedule_keeps_no_other_from_going_on(redis: Redis, keys: Keys, backend: Backend) -> None:
    for key in ("broken-record", "broken-opts", "broken-cron", "whole"):
        await put(backend, key, every=60)
    await redis.delete(keys.scheduler("broken-record"))
    await redis.lpush(keys.scheduler("broken-record"), "no hash")
    for key, opts in (("broken-opts", "{"), ("broken-cron", '{"repeat":{"pattern":"nonsense"}}')):
        at = int(await redis.zscore(keys.repeat, key))
        await redis.hset(keys.job(f"repeat:{key}:{at}"), "opts", opts)
    consumer = backend.consumer(ConsumerSettings("q", "worker-1"))

    claims = (await consumer.settle([], 10)).claims
    await consumer.close()

    assert len(claims) == 4
    delayed = [job_id.decode() for job_id in await redis.zrange(keys.delayed, 0, -1)]
    assert [job_id.rsplit(":", 1)[0] for job_id in delayed] == ["repeat:whole"]


@pytest.mark.parametrize("stored", ["NaN", "1e400", "-Infinity", "soon"])
async def test_numbers_of_a_schedule_that_are_none_are_listed_as_none(
    *, redis: Redis, keys: Keys, backend: Backend, stored: str
) -> None:
    await put(backend, "odd", every=60, limit=7)
    await redis.hset(keys.scheduler("odd"), mapping=dict.fromkeys(("every", "ic", "limit"), stored))
    [odd] = await backend.schedules.schedules("q")
    assert (odd.every, odd.runs, odd.limit) == (None, None, None)


async def test_schedules_are_listed_with_what_they_are(redis: Redis, keys: Keys, backend: Backend) -> None:
    start, end = soon(30), soon(500)
    await put(backend, "beat", {"t": 1}, every=2.5, limit=7, start_at=start, end_at=end)
    await put(backend, "yearly", name="report", cron="0 0 1 1 *", tz="Asia/Tokyo")

    beat, yearly = await backend.schedules.schedules("q")

    assert (beat.key, beat.queue, beat.name, beat.every, beat.cron) == ("beat", "q", "tick", 2.5, None)
    assert (beat.data, beat.limit, beat.runs) == ({"t": 1}, 7, 1)
    assert abs(beat.start_at - start) < timedelta(milliseconds=2)
    assert abs(beat.end_at - end) < timedelta(milliseconds=2)
    assert beat.next_run == beat.start_at
    assert (yearly.key, yearly.name, yearly.every, yearly.cron) == ("yearly", "report", None, "0 0 1 1 *")
    assert (yearly.tz, yearly.data) == ("Asia/Tokyo", {})
    assert yearly.next_run.isoformat().endswith("-12-31T15:00:00+00:00")


async def test_what_schedule_returns_is_what_schedules_lists(backend: Backend) -> None:
    put_one = await put(backend, "s", {"t": 1}, every=60, job={"attempts": 3})

    [listed] = await backend.schedules.schedules("q")

    assert {**vars_of(put_one), "raw": None} == {**vars_of(listed), "raw": None}


def vars_of(schedule: Schedule) -> dict[str, Any]:
    return {name: getattr(schedule, name) for name in Schedule.__slots__}


async def test_a_changed_rule_starts_afresh(redis: Redis, keys: Keys, backend: Backend) -> None:
    await put(backend, "s", every=3600, start_at=soon(3600))

    changed = await put(backend, "s", every=60)

    assert changed.next_run < soon(1)
    assert await redis.lrange(keys.wait, 0, -1) == [f"repeat:s:{int(await redis.zscore(keys.repeat, 's'))}".encode()]
    assert await redis.zcard(keys.delayed) == 0


async def test_a_record_of_bullmq_6_can_be_put_again_and_advanced(jobwire_valkey, prefix, redis, keys, backend) -> None:
    from .peer import node

    script = 'await queueOf(prefixes[0]).upsertJobScheduler("s", { every: 60000 }, { name: "n", data: { six: 1 } });'
    await node(jobwire_valkey.url, [prefix], script, peer="bullmq-6")

    [claim] = await claim_and_complete(backend)
    again = await put(backend, "s", {"five": 1}, every=60)

    assert claim.job.data == {"six": 1}
    assert (again.runs, await redis.zcard(keys.delayed)) == (2, 1)


async def test_a_schedules_current_job_cannot_be_removed_but_goes_with_the_schedule(backend: Backend) -> None:
    await put(backend, "s", every=60, start_at=soon(60))
    [job] = await backend.jobs("q", State.DELAYED, 10, None)

    assert await backend.remove("q", [job.id]) == [Acted.WRONG_STATE]
    assert await backend.schedules.unschedule("q", "s")
    assert await backend.get("q", [job.id]) == [None]
    assert not await backend.schedules.unschedule("q", "s")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"every": 60, "end_at": datetime(2020, 1, 1, tzinfo=UTC)}, "end_at"),
        ({"cron": "not a rule"}, "cron"),
        ({"cron": "* * * * *", "tz": "Mars/Olympus"}, "tz"),
        ({"every": 60, "job": {"id": "mine"}}, "id"),
        ({"every": 60, "job": {"delay": 5}}, "delay"),
    ],
)
async def test_what_a_schedule_cannot_have_is_refused_before_anything_is_written(
    options: dict[str, Any], field: str, redis: Redis, keys: Keys, backend: Backend
) -> None:
    with pytest.raises(InvalidOption) as refused:
        await put(backend, "s", **options)

    assert refused.value.field == field
    assert not await redis.exists(keys.repeat, keys.scheduler("s"), keys.id)
