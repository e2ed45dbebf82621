"""A database per test, seen from both sides: through jobwire, and through the plain driver as a peer sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.collection import Collection

from jobwire.boundary import Consumer, ConsumerSettings
from jobwire.connection import Connection, connect
from jobwire.embedded import Server
from jobwire.queue import Queue
from jobwire.worker import Worker

from .peer import Peer

QUEUE = "emails"


@pytest.fixture
def url(jobwire_mongo: Server, unique: str) -> Iterator[str]:
    yield f"monque+{jobwire_mongo.url.replace('/?', f'/{unique}?')}"
    with MongoClient(jobwire_mongo.url) as client:
        client.drop_database(unique)


@pytest.fixture
def jobs(jobwire_mongo: Server, unique: str) -> Iterator[Collection[dict[str, Any]]]:
    """The collection of jobs, as any other program sees it."""
    with MongoClient(jobwire_mongo.url, tz_aware=True) as client:
        yield client[unique]["monque_jobs"]


@pytest.fixture
def peer(jobs: Collection[dict[str, Any]]) -> Peer:
    return Peer(jobs, "node-1")


@pytest.fixture
async def connection(url: str) -> AsyncIterator[Connection]:
    async with connect(url) as connection:
        yield connection


@pytest.fixture
async def queue(connection: Connection) -> AsyncIterator[Queue]:
    async with Queue(QUEUE, connection) as queue:
        yield queue


@pytest.fixture
def work(connection: Connection) -> Callable[..., Worker]:
    def make(handler: Callable[[Any], Any], **options: Any) -> Worker:
        return Worker(QUEUE, handler, connection, **options)

    return make


@pytest.fixture
async def consume(connection: Connection) -> AsyncIterator[Callable[..., Consumer]]:
    made: list[Consumer] = []

    def make(worker_id: str | None = None, **settings: Any) -> Consumer:
        worker_id = worker_id or f"python-{len(made) + 1}"
        consumer = connection.backend.consumer(ConsumerSettings(queue=QUEUE, worker_id=worker_id, **settings))
        made.append(consumer)
        return consumer

    yield make
    for consumer in made:
        await consumer.close()
