"""A Monque queue seen from three sides: the pipeline's store, jobwire's queue, the plain driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.collection import Collection

from jobwire import Queue, urls
from jobwire.pipeline.stores.boundary import QueueStore
from pipeline.stores.reading import opened

QUEUE = "emails"


@pytest.fixture
def queue_name() -> str:
    return QUEUE


@pytest.fixture
def url(place: Callable[[str], str]) -> str:
    return place("monque").replace("max_retries=1", "max_retries=2")


@pytest.fixture
def collection(url: str) -> Iterator[Collection[dict[str, Any]]]:
    with MongoClient(urls.parse(url).driver_url, tz_aware=True) as client:
        yield client.get_default_database()["monque_jobs"]


@pytest.fixture
def store(url: str, queue: Queue) -> Iterator[QueueStore]:
    store = opened(url, QUEUE)
    yield store
    store.close()
