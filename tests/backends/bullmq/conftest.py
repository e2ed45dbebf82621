"""A real server, and a prefix of its own for every test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from redis.asyncio import Redis

from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Backend
from jobwire.connection import load_backend
from jobwire.embedded import Server
from jobwire.urls import parse

from .dump import dump
from .peer import node


@pytest.fixture
def prefix() -> str:
    """A key prefix that no other test has."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def keys(prefix: str) -> Keys:
    """The keys of queue `q` under the test's prefix."""
    return Keys(prefix, "q")


@pytest.fixture
async def redis(jobwire_valkey: Server) -> AsyncIterator[Redis]:
    """A plain client, for looking at what is stored and for making states by hand. Replies are bytes."""
    async with Redis.from_url(jobwire_valkey.url) as client:
        yield client


@pytest.fixture
async def backend(jobwire_valkey: Server, prefix: str) -> AsyncIterator[Backend]:
    """BullMQ on the test's prefix, open."""
    backend = load_backend(parse(f"bullmq+{jobwire_valkey.url}?prefix={prefix}"))
    await backend.open()
    yield backend
    await backend.close()


Same = Callable[[str, str, Callable[[Backend], Awaitable[object]]], Awaitable[None]]


@pytest.fixture
def same_as_node(jobwire_valkey: Server, redis: Redis, prefix: str, backend: Backend) -> Same:
    """Asserts that we leave the store as Node does: Node arranges the same state twice, then acts on one of them and
    we on the other. Both scripts see the prefix as `p`."""

    async def compare(arrange: str, act: str, ours: Callable[[Backend], Awaitable[object]]) -> None:
        theirs = f"{prefix}-node"
        script = f"for (const p of prefixes) {{ {arrange} }} {{ const p = prefixes[1]; {act} }}"
        await node(jobwire_valkey.url, [prefix, theirs], script)
        await ours(backend)
        assert await dump(redis, prefix) == await dump(redis, theirs)

    return compare
