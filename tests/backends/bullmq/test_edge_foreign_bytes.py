"""Bytes that are no UTF-8 and values of the wrong kind, written by some other client: they spoil their own job only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from awaiting import eventually
from jobwire import Queue, State, Worker
from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Backend
from jobwire.embedded import Server
from jobwire.worker.active import ActiveJob

BAD = b"\xff\xfe\x00 \xc3\x28 \xed\xa0\x80"


@pytest.fixture
async def queue(jobwire_valkey: Server, prefix: str) -> AsyncIterator[Queue]:
    async with Queue("q", f"bullmq+{jobwire_valkey.url}?prefix={prefix}") as opened:
        yield opened


async def plant(redis: Redis, keys: Keys, job_id: bytes, **fields: bytes) -> None:
    """A job as a careless client might have written it."""
    whole = {b"name": b"n", b"data": b"{}", b"opts": b"{}", b"timestamp": b"1790000000000", b"delay": b"0"}
    whole |= {b"priority": b"0"} | {name.encode(): value for name, value in fields.items()}
    await redis.hset(keys.base.encode() + job_id, mapping=whole)  # type: ignore[arg-type]
    await redis.lpush(keys.wait, job_id)


async def run_all(queue: Queue, jobs: int) -> list[str]:
    """Work until so many jobs are done with; the names of those that were run."""
    ran: list[str] = []

    async def handle(job: ActiveJob) -> str:
        ran.append(job.name)
        return "ok"

    worker = Worker("q", handle, queue.connection)
    running = asyncio.create_task(worker.run(signals=False))

    async def done() -> bool:
        counts = await queue.counts()
        return counts[State.COMPLETED] + counts[State.FAILED] == jobs and not counts[State.ACTIVE]

    try:
        await eventually(done)
    finally:
        await worker.stop()
        await running
    return ran


async def test_data_that_is_no_utf8_fails_its_job_and_no_other(queue: Queue, redis: Redis, keys: Keys) -> None:
    await queue.add(1, name="before")
    await plant(redis, keys, b"bad", data=b'{"text":"' + BAD + b'"}')
    await queue.add(2, name="after")

    ran = await run_all(queue, 3)

    assert ran == ["before", "after"]
    job = await queue.get("bad")
    assert job is not None
    assert job.state is State.FAILED
    assert job.error is not None
    assert "data" in job.error
    stored = await redis.hget(keys.job("bad"), "data")
    assert stored == b'{"text":"' + BAD + b'"}', "what someone wrote is kept for whoever looks into it"


@pytest.mark.parametrize("field", ["name", "progress", "returnvalue", "failedReason", "stacktrace", "pb", "deid"])
async def test_a_field_that_is_no_utf8_does_not_keep_a_job_from_running(
    field: str, queue: Queue, redis: Redis, keys: Keys
) -> None:
    await plant(redis, keys, b"odd", **{field: BAD})
    await queue.add(2, name="after")

    seen = await queue.get("odd")
    page = await queue.jobs(State.WAITING)
    ran = await run_all(queue, 2)

    assert seen is not None
    assert [job.id for job in page] == ["odd", "1"]
    assert len(ran) == 2
    assert (await queue.counts())[State.COMPLETED] == 2


@pytest.mark.parametrize("opts", [BAD, b"", b"[]", b"null", b'"text"', b'{"attempts":"many","backoff":[],"delay":{}}'])
async def test_options_that_can_not_be_read_count_as_none(opts: bytes, queue: Queue, redis: Redis, keys: Keys) -> None:
    await plant(redis, keys, b"odd", opts=opts)

    assert await run_all(queue, 1) == ["n"]


async def test_an_id_that_is_no_utf8_is_run_and_settled(queue: Queue, redis: Redis, keys: Keys) -> None:
    await plant(redis, keys, BAD)
    await queue.add(2, name="after")

    assert await run_all(queue, 2) == ["n", "after"]
    assert BAD in await redis.zrange(keys.completed, 0, -1)
    assert not await redis.exists(keys.base.encode() + BAD + b":lock")


async def test_log_lines_and_events_that_are_no_utf8_are_shown_as_far_as_they_can_be(
    queue: Queue, redis: Redis, keys: Keys, backend: Backend
) -> None:
    await queue.add(1)
    await redis.rpush(keys.logs("1"), BAD, b"plain")
    start = await backend.events.cursor("q")
    await redis.xadd(keys.events, {b"event": b"noise", BAD: BAD})
    await redis.xadd(keys.events, {b"event": b"waiting", b"jobId": BAD})
    await queue.add(2)

    assert (await queue.logs("1"))[1] == "plain"
    events = queue.events(start)
    async with asyncio.timeout(10):
        seen = [await anext(events) for _ in range(3)]
    await events.aclose()  # type: ignore[attr-defined]
    assert [event.native_type for event in seen] == ["noise", "waiting", "added"]


@pytest.mark.parametrize("kind", ["string", "list", "stream"])
async def test_an_entry_whose_key_is_no_hash_is_passed_over(
    kind: str, queue: Queue, redis: Redis, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    make = {"string": redis.set, "list": redis.rpush, "stream": lambda key, value: redis.xadd(key, {"x": value})}
    await make[kind](keys.job("odd"), "x")
    await redis.lpush(keys.wait, "odd")
    await queue.add(2, name="after")

    assert await run_all(queue, 1) == ["after"]
    assert "odd" in caplog.text
