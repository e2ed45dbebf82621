"""A connection, a queue, workers and consumers at the `url` of a test. A folder's conftest defines that fixture, and
`queue_name` if another name suits its tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from jobwire import Connection, Queue, Worker, connect
from jobwire.boundary import Consumer, ConsumerSettings


@pytest.fixture
def queue_name() -> str:
    return "letters"


@pytest.fixture
async def connection(url: str) -> AsyncIterator[Connection]:
    async with connect(url) as connection:
        yield connection


@pytest.fixture
async def queue(connection: Connection, queue_name: str) -> AsyncIterator[Queue]:
    async with Queue(queue_name, connection) as queue:
        yield queue


@pytest.fixture
def work(connection: Connection, queue_name: str) -> Callable[..., Worker]:
    """Makes a worker of the queue: `async with work(handler, concurrency=5) as worker:`."""

    def make(handler: Callable[[Any], Any], *, queue: str = queue_name, **options: Any) -> Worker:
        return Worker(queue, handler, connection, **options)

    return make


@pytest.fixture
async def consume(connection: Connection, queue_name: str) -> AsyncIterator[Callable[..., Consumer]]:
    """Makes a bare consumer of the queue, for the contracts below the worker."""
    made: list[Consumer] = []

    def make(worker_id: str | None = None, *, queue: str = queue_name, **settings: Any) -> Consumer:
        worker_id = worker_id or f"worker-{len(made) + 1}"
        consumer = connection.backend.consumer(ConsumerSettings(queue=queue, worker_id=worker_id, **settings))
        made.append(consumer)
        return consumer

    yield make
    for consumer in made:
        await consumer.close()
