"""A database per test, seen from both sides: through jobwire, and through the plain driver as a peer sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.collection import Collection

from jobwire.embedded import Server

from .peer import Peer


@pytest.fixture
def queue_name() -> str:
    return "emails"


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
