"""A store in this process, metrics with a registry of their own, and an endpoint to scrape."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from prometheus_client import CollectorRegistry

from jobwire import Connection, Queue, connect
from jobwire.observe.metrics import Metrics


@pytest.fixture
async def connection(unique: str) -> AsyncIterator[Connection]:
    async with connect(f"memory:{unique}") as opened:
        yield opened


@pytest.fixture
async def queue(connection: Connection) -> AsyncIterator[Queue]:
    async with Queue("emails", connection) as opened:
        yield opened


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    with Metrics(CollectorRegistry(), fresh_for=0) as made:
        yield made


@pytest.fixture
def port(metrics: Metrics) -> int:
    return metrics.serve(0)
