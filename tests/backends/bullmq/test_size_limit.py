"""The size of a job is that of its data and its options, as they are stored."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from jobwire import Connection, Flow, FlowJob, NewJob, PayloadTooLarge, Queue, State, connect
from jobwire.backends.bullmq.keys import Keys
from jobwire.embedded import Server


@pytest.fixture
async def connection(jobwire_valkey: Server, prefix: str) -> AsyncIterator[Connection]:
    async with connect(f"bullmq+{jobwire_valkey.url}?prefix={prefix}") as connection:
        yield connection


async def test_options_count_into_the_size_byte_for_byte(connection: Connection, redis: Redis, keys: Keys) -> None:
    async with Queue("q", connection) as queue:
        job = await queue.add("é" * 10, priority=2, id="x")
    data, opts = await redis.hmget(keys.job(job.id), "data", "opts")
    size = len(data) + len(opts)
    async with Queue("q", connection, size_limit=size) as queue:
        await queue.add("é" * 10, priority=2, id="y")
    async with Queue("q", connection, size_limit=size - 1) as queue:
        with pytest.raises(PayloadTooLarge) as refused:
            await queue.add("é" * 10, priority=2, id="z")
    assert (refused.value.size, refused.value.limit) == (size, size - 1)
    assert not await redis.exists(keys.job("z"))


async def test_the_limit_is_ten_megabytes_and_can_be_switched_off(connection: Connection) -> None:
    large = "x" * 12_897_485
    async with Queue("q", connection) as queue:
        with pytest.raises(PayloadTooLarge, match=r"^Job payload size 12\.3 MB exceeds limit of 10\.0 MB$"):
            await queue.add_many([NewJob("small"), NewJob(large)])
        assert (await queue.counts())[State.WAITING] == 0
    async with Queue("q", connection, size_limit=None) as queue:
        await queue.add(large)
        assert (await queue.counts())[State.WAITING] == 1


async def test_every_job_of_a_flow_is_measured_before_any_is_written(connection: Connection) -> None:
    async with Flow(connection, size_limit=100) as flow, Queue("q", connection) as queue:
        with pytest.raises(PayloadTooLarge):
            await flow.add(FlowJob("q", 1, children=[FlowJob("q", 2), FlowJob("q", "x" * 100)]))
        assert sum((await queue.counts()).values()) == 0
