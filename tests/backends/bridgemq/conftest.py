"""A real server, and a namespace of its own for every test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from jobwire import Queue, Worker, connect
from jobwire.boundary import Claim, Consumer, ConsumerSettings
from jobwire.connection import Connection
from jobwire.embedded import Server
from jobwire.native import BridgeMQWorker

from .peer import Peer

KIND = "mail"


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
async def connection(url: str) -> AsyncIterator[Connection]:
    async with connect(url) as connection:
        yield connection


@pytest.fixture
async def queue(connection: Connection) -> AsyncIterator[Queue]:
    async with Queue(KIND, connection) as queue:
        yield queue


@pytest.fixture
def peer(redis: Redis, namespace: str) -> Peer:
    return Peer(redis, namespace)


@pytest.fixture
def work(connection: Connection) -> Callable[..., Worker]:
    def make(handler: Callable[[Any], Any], **options: Any) -> Worker:
        return Worker(KIND, handler, connection, **options)

    return make


@pytest.fixture
async def consume(connection: Connection) -> AsyncIterator[Callable[..., Consumer]]:
    """Make a bare consumer: `consume(stack="py")`. What not every consumer has is an option of this protocol."""
    made: list[Consumer] = []
    common = ("lease", "max_stalled", "recover_every", "name", "rate")

    def make(worker_id: str | None = None, queue: str = KIND, **options: Any) -> Consumer:
        settings = {name: options.pop(name) for name in common if name in options}
        consumer = connection.backend.consumer(
            ConsumerSettings(
                queue, worker_id or f"worker-{len(made) + 1}", native=BridgeMQWorker(**options), **settings
            )
        )
        made.append(consumer)
        return consumer

    yield make
    for consumer in made:
        await consumer.close()


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
