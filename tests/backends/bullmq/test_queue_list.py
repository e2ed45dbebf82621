"""Queues are found by their keys, whatever else is in the database."""

from __future__ import annotations

from redis.asyncio import Redis

from jobwire.boundary import Backend
from jobwire.connection import load_backend
from jobwire.embedded import Server
from jobwire.urls import parse


async def test_only_queues_of_the_very_prefix_are_listed(jobwire_valkey: Server, prefix: str) -> None:
    """The prefix is a text, also if it has characters of a pattern."""
    odd = f"{prefix}[a-z]*"
    backend = load_backend(parse(f"bullmq+{jobwire_valkey.url}?prefix={odd.replace('[', '%5B').replace(']', '%5D')}"))
    await backend.open()
    assert backend.queue_list is not None
    try:
        await backend.register("mine")
        async with Redis.from_url(jobwire_valkey.url) as client:
            await client.hset(f"{prefix}x:theirs:meta", "version", "1")
            await client.hset(f"{odd}:mine:7:meta", "version", "1")  # a job's own key, not a queue
        assert list(await backend.queue_list.names()) == ["mine"]
    finally:
        await backend.close()


async def test_a_queue_without_settings_is_known_by_its_jobs(backend: Backend, redis: Redis, prefix: str) -> None:
    assert backend.queue_list is not None
    await redis.lpush(f"{prefix}:bare:wait", "1")
    assert await backend.queue_list.has("bare")
    assert not await backend.queue_list.has("bar")


async def test_a_large_database_is_scanned_to_its_end(backend: Backend, redis: Redis, prefix: str) -> None:
    async with redis.pipeline(transaction=False) as pipeline:
        for number in range(3000):
            pipeline.set(f"{prefix}:filler:{number}", "x", ex=60)
        await pipeline.execute()
    for name in ("a", "b", "c"):
        await backend.register(name)
    assert backend.queue_list is not None
    assert list(await backend.queue_list.names()) == ["a", "b", "c"]
    _, cursor = await backend.queue_list.search(None)
    assert cursor is not None, "a step looks at a part of the keys only"
