"""A real server, and a namespace of its own for every test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from jobwire.boundary import Claim, Consumer
from jobwire.embedded import Server
from jobwire.native import BridgeMQWorker

from .peer import Peer


@pytest.fixture
def queue_name() -> str:
    return "mail"


@pytest.fixture
def namespace() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def url(jobwire_valkey: Server, namespace: str) -> str:
    return f"bridgemq+{jobwire_valkey.url}?namespace={namespace}"


@pytest.fixture
async def redis(jobwire_valkey: Server) -> AsyncIterator[Redis]:
    """A plain client, for looking at what is stored and for making states by hand. Replies are text."""
    async with Redis.from_url(jobwire_valkey.url, decode_responses=True) as client:
        yield client


@pytest.fixture
def peer(redis: Redis, namespace: str) -> Peer:
    return Peer(redis, namespace)


@pytest.fixture
def consume(consume: Callable[..., Consumer]) -> Callable[..., Consumer]:
    """Makes a bare consumer: `consume(stack="py")`. What not every consumer has is an option of this protocol."""
    common = ("queue", "lease", "max_stalled", "recover_every", "name", "rate")

    def make(worker_id: str | None = None, **options: Any) -> Consumer:
        settings = {name: options.pop(name) for name in common if name in options}
        return consume(worker_id, native=BridgeMQWorker(**options), **settings)

    return make


@pytest.fixture
def claimed() -> Callable[..., Any]:
    """Claim jobs with a bare consumer until a look finds none; the claims."""

    async def claim(consumer: Consumer, count: int = 1) -> list[Claim]:
        found: list[Claim] = []
        while len(found) < count:
            settled = await consumer.settle([], count - len(found))
            found += settled.claims
            # An answer of "now" says that there is more of the list to be read.
            if not settled.claims and settled.next_in != 0:
                break
        return found

    return claim
